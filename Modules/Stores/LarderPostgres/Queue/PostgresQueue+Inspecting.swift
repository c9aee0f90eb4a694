#if Postgres
import Foundation
public import Larder

/// Listing the items that consumers hold, and the groups.
extension PostgresQueue: InspectableQueue {
  /// Returns leased items by the ends of their leases; see `InspectableQueue`.
  ///
  /// A page looks at 512 leases and delays at most, so it can have few items if many others are delayed.
  public func leasedItems(limit: Int, after position: StoreKey?) async throws -> QueuePage<HeldItem> {
    let limit = try information.checked(pageLimit: limit, for: .leasedItems)
    let start = try position.map { position in
      guard let place = LeasePosition(position) else { throw information.invalidPosition(during: .leasedItems) }
      return place
    }
    return try await handle.running(.leasedItems) {
      let rows = try await handle.read(statements.leasedItems(limit: limit, after: start), for: .leasedItems)
      let leased = (0..<rows.rowCount).filter { rows.integer($0, 5) == Int64(QueueStatements.State.leased) }
      // The statement returns one lease more than the page has, and the last row that it has looked at.
      let isFull = rows.rowCount > 0 && (rows.integer(0, 6) ?? 0) >= Int64(QueueStatements.lookLimit)
      let last = leased.count > limit ? leased.prefix(limit).last : isFull ? rows.rowCount - 1 : nil
      return QueuePage(
        entries: leased.prefix(limit).map { held(in: rows, $0, from: 0, isLeased: true) },
        next: last.map { LeasePosition(until: rows.integer($0, 4) ?? 0, sequence: rows.integer($0, 0) ?? 0).key })
    }
  }

  /// Returns an item in the columns of its number, key, group, deliveries and deadline.
  private func held(in rows: QueryResult, _ row: Int, from column: Int, isLeased: Bool) -> HeldItem {
    HeldItem(
      key: rows.key(row, column + 1), sequence: UInt128(clamping: rows.integer(row, column) ?? 0),
      group: rows.isNull(row, column + 2) ? nil : rows.key(row, column + 2),
      attempt: Int(rows.integer(row, column + 3) ?? 0), isLeased: isLeased,
      deadline: Date(microsecondsSince1970: rows.integer(row, column + 4) ?? 0))
  }

  /// Returns the groups by their names; see `InspectableQueue`.
  public func groups(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueGroup> {
    let limit = try information.checked(pageLimit: limit, for: .groups)
    return try await handle.running(.groups) {
      let rows = try await handle.read(statements.groups(limit: limit, after: position ?? ""), for: .groups)
      let groups = (0..<rows.rowCount).compactMap { row -> QueueGroup? in
        guard let count = rows.integer(row, 1), count > 0 else { return nil }
        let state = rows.integer(row, 7).flatMap { Int(exactly: $0) }
        let blocker = state.map { held(in: rows, row, from: 2, isLeased: $0 == QueueStatements.State.leased) }
        return QueueGroup(name: rows.key(row, 0), count: Int(count), blocker: blocker)
      }
      let isLast = rows.rowCount < limit || rows.rowCount == 0
      return QueuePage(entries: groups, next: isLast ? nil : rows.key(rows.rowCount - 1, 0))
    }
  }

  /// Returns no schedules, because a `PostgresQueue` has none; see `InspectableQueue`.
  public func schedules(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueScheduleRecord> {
    _ = try information.checked(pageLimit: limit, for: .schedules)
    return try await handle.running(.schedules) { QueuePage(entries: []) }
  }
}

/// The place of a leased or delayed item in the order of deadlines.
struct LeasePosition: Sendable, Hashable {
  /// The deadline, in microseconds since 1970.
  let until: Int64
  let sequence: Int64
}

extension LeasePosition {
  /// Reads a position, or returns `nil` if it is not one.
  init?(_ key: StoreKey) {
    let bytes = key.bytes
    guard bytes.count == 16 else { return nil }
    let (until, sequence) = (Int64(bigEndianBytes: bytes[0..<8]), Int64(bigEndianBytes: bytes[8..<16]))
    // A time outside of these years is no `timestamptz`.
    guard (0...Self.latest).contains(until) else { return nil }
    self.init(until: until, sequence: sequence)
  }

  /// The year 9999, in microseconds since 1970.
  private static let latest: Int64 = 253_402_300_800 * 1_000_000

  /// The position as the bytes of a key.
  var key: StoreKey { StoreKey(bytes: until.bigEndianBytes + sequence.bigEndianBytes) }
}
#endif
