import Foundation
public import Larder

/// Listing the items that consumers hold.
extension QueueStore: InspectableQueue {
  /// Returns leased items in order of arrival; see `InspectableQueue`.
  ///
  /// A page looks at 4,096 leased and delayed items at most.
  ///
  /// ```swift
  /// for item in try await queue.leasedItems(limit: 20, after: nil).entries {
  ///   print(item.key, "until", item.deadline)
  /// }
  /// ```
  public func leasedItems(limit: Int, after position: StoreKey?) async throws -> QueuePage<HeldItem> {
    let limit = try information.checked(pageLimit: limit, for: .leasedItems)
    let start = try position.map { position in
      guard position.count == 8 else { throw information.invalidPosition(during: .leasedItems) }
      return UInt64(bigEndianBytes: position.bytes)
    }
    return try await perform(.leasedItems, .looks) { core in
      let (states, next) = core.ledger.leasedItems(limit, after: start ?? 0)
      return QueuePage(
        entries: states.map { state in
          HeldItem(
            key: state.item.key, sequence: UInt128(state.item.sequence), attempt: Int(state.item.attempts),
            deadline: Date(microsecondsSince1970: state.timer?.deadline ?? 0))
        },
        next: next.map { StoreKey(bytes: $0.bigEndianBytes) })
    }
  }

  /// Returns no groups, because a `QueueStore` has none; see `InspectableQueue`.
  public func groups(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueGroup> {
    _ = try information.checked(pageLimit: limit, for: .groups)
    return try await running(.groups) { QueuePage(entries: []) }
  }

  /// Returns no schedules, because a `QueueStore` has none; see `InspectableQueue`.
  public func schedules(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueScheduleRecord> {
    _ = try information.checked(pageLimit: limit, for: .schedules)
    return try await running(.schedules) { QueuePage(entries: []) }
  }
}
