import Larder

/// Timers that have expired, and those that a wrong clock has set.
extension StoreQueue {
  /// The most timers that one call handles.
  private static var timerLimit: Int { 256 }

  /// The most timers that are looked at in one step of a correction.
  private static var correctionLimit: Int { 1024 }

  /// Handles some expired timers: items become ready, ids are forgotten, and old dead letters are removed.
  ///
  /// Ids and dead letters wait until no more timers of items have expired.
  ///
  /// - Returns: The number of items that have become ready, and whether timers of more items have expired.
  func settleTimers(_ operation: StoreOperation) async throws -> (count: Int, hasMore: Bool) {
    let now = microseconds
    noteClock(now)
    try await correctSomeTimers(operation)
    let items = try await settle(layout.expired(layout.timers, at: now), atMost: Self.timerLimit, operation)
    if !items.hasMore, items.count < Self.timerLimit {
      let rest = Self.timerLimit - items.count
      _ = try await settle(layout.expired(layout.lateTimers, at: now), atMost: rest, operation)
    }
    return items
  }

  /// Settles the first timers of a range.
  ///
  /// The timers of delayed items whose groups are blocked are passed over, however many there are. The first of these items
  /// are parked, so that no later call meets them.
  private func settle(
    _ range: KeyRange, atMost limit: Int, _ operation: StoreOperation
  ) async throws -> (count: Int, hasMore: Bool) {
    var rest: KeyRange? = range
    var timers: [StoredTimer] = []
    var behind: [StoredTimer] = []
    var groups: [StoreKey: GroupHead] = [:]
    var pageSize = limit
    while timers.count < limit, let (found, next) = try await self.timers(in: rest, pageSize, operation) {
      (rest, pageSize) = (next, Self.lookLimit)
      for timer in found {
        if let group = timer.group, case .item(let sequence, isLeased: false) = timer.subject {
          if groups[group] == nil { groups[group] = try await head(of: group, operation) }
          if let head = groups[group], head.first != nil, head.leasable != sequence {
            if behind.count < limit { behind.append(timer) }
            continue
          }
        }
        guard timers.count < limit else {
          rest = range.after(timers[limit - 1].key)
          break
        }
        timers.append(timer)
      }
    }
    var plans = try await self.plans(timers, operation) { $1.settle($0) }
    plans += try await parkingPlans(behind, groups, operation)
    let performedCount = try await perform(plans, operation).count { $0 < timers.count }
    // If others have handled some of them, there may be more.
    return (performedCount, rest != nil || performedCount < timers.count)
  }

  /// Plans to park the items of timers, with one plan for each group; see `park(_:)`.
  private func parkingPlans(
    _ behind: [StoredTimer], _ groups: [StoreKey: GroupHead], _ operation: StoreOperation
  ) async throws -> [QueuePlan] {
    let stored = try await read(behind.map { subjectKey($0.subject) }, operation)
    return Dictionary(grouping: behind, by: \.group).compactMap { group, timers in
      guard let group, var plan = groups[group]?.plan else { return nil }
      for timer in timers {
        let subject = subjectKey(timer.subject)
        plan.read([subject: stored[subject] ?? nil, timer.key: timer.value])
        plan.park(timer)
      }
      return plan
    }
  }

  /// Returns the first timers of a range and the rest of the range, or `nil` without a range.
  private func timers(
    in range: KeyRange?, _ limit: Int, _ operation: StoreOperation
  ) async throws -> (found: [StoredTimer], rest: KeyRange?)? {
    guard let range else { return nil }
    let entries = try await callingBase(operation) {
      try await base.entries(in: range, limit: limit, order: .ascending)
    }
    let last = entries.count < limit ? nil : entries.last
    let rest = try last.map { try range.rest(behind: $0.key, of: information.name, during: operation) }
    return (entries.compactMap(layout.timer), rest)
  }

  /// Plans changes of the subjects of timers, each if it is as it was read.
  private func plans(
    _ timers: [StoredTimer], _ operation: StoreOperation, _ change: (StoredTimer, inout QueuePlan) -> Void
  ) async throws -> [QueuePlan] {
    let stored = try await read(timers.map { subjectKey($0.subject) }, operation)
    var plans: [QueuePlan] = []
    for timer in timers {
      let subject = subjectKey(timer.subject)
      var plan = newPlan()
      plan.read([subject: stored[subject] ?? nil, timer.key: timer.value])
      change(timer, &plan)
      try await finishGroups(&plan, operation)
      plans.append(plan)
    }
    return plans
  }

  private func subjectKey(_ subject: QueueTimer) -> StoreKey {
    switch subject {
    case .item(let sequence, _): layout.stateKey(sequence)
    case .id(let id): layout.rememberedKey(id)
    case .deadLetter(let sequence): layout.deadKey(sequence)
    }
  }

  // MARK: Correcting

  /// Corrects all timers that were set by a clock that was ahead.
  func correctTimers(_ operation: StoreOperation) async throws {
    correction.withLock { $0 = wrongTimers(at: microseconds) }
    while try await correctSomeTimers(operation) {}
  }

  /// Begins a correction if the clock was set back since a call of this object has read it.
  private func noteClock(_ now: Int64) {
    let wasSetBack = latestTime.withLock { latest in
      guard WallClock.wasAhead(at: latest, now: now) else { return false }
      latest = now
      return true
    }
    if wasSetBack { correction.withLock { $0 = wrongTimers(at: now) } }
  }

  /// Begins a correction if the clock was set back after changes were planned, because one that has begun before their commit may
  /// have missed their timers.
  ///
  /// - Returns: A Boolean value that indicates whether a correction was begun.
  @discardableResult
  func noteCommit(plannedAt time: Int64) -> Bool {
    let now = microseconds
    guard WallClock.wasAhead(at: time, now: now) else { return false }
    correction.withLock { $0 = wrongTimers(at: now) }
    // A consumer waits for the end of a timer that will be corrected.
    waits.signal()
    return true
  }

  /// The ranges where a timer that was set by a clock that was ahead can be.
  ///
  /// A lease or a delay can have any length. Ids and dead letters have the lengths of the configuration, so few other
  /// timers are as late.
  private func wrongTimers(at now: Int64) -> [KeyRange] {
    let begin = now.addingSaturating(WallClock.tolerance.wholeMicroseconds)
    let length = min(rules.duplicateWindow, rules.deadLetterRetention ?? .max)
    return [
      layout.pending(layout.timers, at: begin), layout.pending(layout.lateTimers, at: begin.addingSaturating(length)),
    ]
  }

  /// Looks at some timers that are still to be looked at, and corrects those that were set by a clock that was ahead.
  ///
  /// - Returns: A Boolean value that indicates whether there was anything to look at.
  @discardableResult
  func correctSomeTimers(_ operation: StoreOperation) async throws -> Bool {
    let before = correction.withLock(\.self)
    guard !before.isEmpty else { return false }
    var ranges = before
    var wrong: [StoredTimer] = []
    var limit = Self.correctionLimit
    while limit > 0, let (found, rest) = try await timers(in: ranges.first, limit, operation) {
      let now = microseconds
      wrong += found.filter { WallClock.wasAhead(at: $0.beginning, now: now) }
      limit -= found.count
      ranges = (rest.map { [$0] } ?? []) + ranges.dropFirst()
    }
    // A timer that another call has changed in the meantime was set by its clock, which it checks after its commit.
    let plans = try await plans(Array(wrong.prefix(Self.timerLimit)), operation) { $1.correct($0) }
    _ = try await perform(plans, operation)
    // Corrected timers are earlier than those that are left, which are looked at again.
    if wrong.count > Self.timerLimit { ranges = before }
    correction.withLock { [ranges] correction in
      // Another call may have done the same, or have begun a new correction.
      if correction == before { correction = ranges }
    }
    return true
  }
}
