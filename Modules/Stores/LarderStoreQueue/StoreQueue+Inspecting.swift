import Foundation
public import Larder

/// Listing the items that consumers hold, the groups and the schedules.
extension StoreQueue: InspectableQueue {
  /// Returns leased items by the ends of their leases; see `InspectableQueue`.
  ///
  /// A page looks at 1,024 leases and delays at most, so it can have few items if many others are delayed.
  public func leasedItems(limit: Int, after position: StoreKey?) async throws -> QueuePage<HeldItem> {
    let limit = try information.checked(pageLimit: limit, for: .leasedItems)
    let timers = layout.timers
    return try await running(.leasedItems) {
      var range = layout.pending(timers, at: microseconds)
      if let position {
        let last = StoreKey(bytes: timers.lowerBound.bytes + position.bytes)
        guard case .item = layout.subject(ofTimer: last) else {
          throw information.invalidPosition(during: .leasedItems)
        }
        range = range.after(last)
      }
      let keys = try await callingBase(.leasedItems) { [range] in
        try await base.keys(in: range, limit: Self.lookLimit, order: .ascending)
      }
      var sequences: [UInt128] = []
      var last = keys.count < Self.lookLimit ? nil : keys.last
      var lastLeased: StoreKey?
      for key in keys {
        guard case .item(let sequence, isLeased: true) = layout.subject(ofTimer: key) else { continue }
        guard sequences.count < limit else {
          last = lastLeased
          break
        }
        sequences.append(sequence)
        lastLeased = key
      }
      let items = try await read(sequences.map(layout.stateKey), .leasedItems)
      let now = microseconds
      return QueuePage(
        entries: sequences.compactMap { sequence in
          held(sequence, items[layout.stateKey(sequence)] ?? nil, at: now).flatMap { $0.isLeased ? $0 : nil }
        },
        next: last.map { StoreKey(bytes: $0.bytes.dropFirst(timers.lowerBound.count)) })
    }
  }

  /// Returns an item that is leased or delayed, or `nil` if it can be received, or if its state is damaged or missing.
  private func held(_ sequence: UInt128, _ state: [UInt8]?, at now: Int64) -> HeldItem? {
    guard let item = state.flatMap({ ItemRecord($0) }), [.leased, .delayed].contains(item.phase), item.deadline > now
    else { return nil }
    return HeldItem(
      key: item.key, sequence: sequence, group: item.group, attempt: Int(item.attempts),
      isLeased: item.phase == .leased, deadline: Date(microsecondsSince1970: item.deadline))
  }

  /// The members of a group that a page has read.
  private struct Members {
    let group: StoreKey
    let first: UInt128
    var count = 0
  }

  /// Returns the groups by the lengths of their names, and then by the names; see `InspectableQueue`.
  public func groups(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueGroup> {
    let limit = try information.checked(pageLimit: limit, for: .groups)
    guard position.map({ (1...QueueInput<Element>.maximumGroupLength).contains($0.count) }) ?? true else {
      throw information.invalidPosition(during: .groups)
    }
    return try await running(.groups) {
      var found: [Members] = []
      var rest: KeyRange? = position.map(following) ?? layout.members
      while found.count < limit, let range = rest {
        let (members, next) = try await members(in: range)
        found += members
        rest = next
      }
      let isLast = rest == nil && found.count <= limit
      found = Array(found.prefix(limit))
      return QueuePage(entries: try await describe(found), next: isLast ? nil : found.last?.group)
    }
  }

  /// Returns the range of the members of the groups after a group.
  private func following(_ group: StoreKey) -> KeyRange {
    layout.members.after(layout.memberKey(group, .max))
  }

  /// Counts the members of the first groups in a range, with one call of the base.
  ///
  /// - Returns: The groups, and the range of those that follow, or `nil` if all were read.
  private func members(in range: KeyRange) async throws -> (found: [Members], rest: KeyRange?) {
    let limit = QueueGroup.countLimit + 1
    let keys = try await callingBase(.groups) { try await base.keys(in: range, limit: limit, order: .ascending) }
    var found: [Members] = []
    for (group, sequence) in keys.lazy.compactMap({ self.layout.member($0) }) {
      if found.last?.group != group { found.append(Members(group: group, first: sequence)) }
      found[found.count - 1].count += 1
    }
    guard keys.count == limit, let last = found.popLast() else {
      // Without a member, all keys are damaged.
      let last = keys.count == limit ? keys.last : nil
      return (found, try last.map { try range.rest(behind: $0, of: information.name, during: .groups) })
    }
    // The last group may have more members than were read. They are counted by the next call, unless these are enough.
    guard found.isEmpty else {
      return (found, KeyRange(from: layout.members(last.group).lowerBound, upTo: range.upperBound))
    }
    return ([last], following(last.group))
  }

  private func describe(_ found: [Members]) async throws -> [QueueGroup] {
    let keys = found.flatMap { [layout.groupKey($0.group), layout.stateKey($0.first)] }
    var stored = try await read(keys, .groups)
    // The item that is leased is usually the first one.
    let holders = found.map { members in
      (stored[layout.groupKey(members.group)] ?? nil).flatMap { GroupRecord($0) }?.leased ?? members.first
    }
    let others = holders.map(layout.stateKey).filter { stored[$0] == nil }
    stored.merge(try await read(others, .groups)) { first, _ in first }
    let now = microseconds
    return zip(found, holders).map { members, holder in
      QueueGroup(
        name: members.group, count: min(members.count, QueueGroup.countLimit),
        blocker: held(holder, stored[layout.stateKey(holder)] ?? nil, at: now))
    }
  }

  /// Returns the records of schedules by their names; see `InspectableQueue`.
  public func schedules(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueScheduleRecord> {
    let limit = try information.checked(pageLimit: limit, for: .schedules)
    let range = position.map { layout.schedules.after(layout.scheduleKey($0)) } ?? layout.schedules
    return try await running(.schedules) {
      let found = try await callingBase(.schedules) {
        try await base.entries(in: range, limit: limit, order: .ascending)
      }
      let records = found.map { entry in
        QueueScheduleRecord(
          name: layout.scheduleName(of: entry.key),
          lastDueDate: Self.dueTime(in: entry.value).map { Date(microsecondsSince1970: $0) })
      }
      return QueuePage(entries: records, next: found.count < limit ? nil : records.last?.name)
    }
  }
}
