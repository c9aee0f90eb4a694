public import Larder

/// Writes that set or keep deadlines.
extension ExpiringStore {
  /// Stores a value and keeps the deadline of the live entry that it replaces.
  ///
  /// If there is no live entry, the new one gets the default time to live of the store. A sliding deadline is renewed
  /// as by a read.
  ///
  /// ```swift
  /// try await sessions.setValueKeepingDeadline(session, forKey: "7")
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: The errors of `update`.
  public func setValueKeepingDeadline(_ value: Value, forKey key: StoreKey) async throws {
    try await updateKeepingDeadlines([key]) { $0[0] = value }
  }

  /// Reads and writes several values as one atomic step, with a time to live.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - timeToLive: The time to live of every value that `body` assigns.
  ///   - body: A closure as that of `update` of a `DataStore`.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of `update` of a `DataStore`; `invalidArgument` if the time to live is invalid.
  @discardableResult
  public func update<Result: Sendable>(
    _ keys: [StoreKey], timeToLive: TimeToLive,
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> Result
  ) async throws -> Result {
    try await update(deciding: keys, timeToLive: timeToLive) { slots in .commit(try body(&slots)) }
  }

  /// Reads and writes several values as one atomic step, with a time to live, if the body decides so.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - timeToLive: The time to live of every value that `body` assigns.
  ///   - body: A closure as that of `update` of a `DataStore`.
  /// - Returns: The result of the decision.
  /// - Throws: The errors of `update` of a `DataStore`; `invalidArgument` if the time to live is invalid.
  @discardableResult
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], timeToLive: TimeToLive,
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    try await update(keys, timeToLive, keepsDeadlines: false) { slots in
      UpdateDecision(catching: { try body(&slots) })
    }.get()
  }

  /// Reads and writes several values as one atomic step, and keeps the deadlines of live entries.
  ///
  /// New entries get the default time to live of the store, also those that replace expired ones. Sliding deadlines of
  /// the values that `body` assigns are renewed as by a read.
  ///
  /// ```swift
  /// // Counts requests in windows of a minute that begin with the first one.
  /// let count = try await limits.updateKeepingDeadlines([client]) { counts in
  ///   counts[0] = (counts[0] ?? 0) + 1
  ///   return counts[0] ?? 0
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - body: A closure as that of `update` of a `DataStore`.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of `update` of a `DataStore`.
  @discardableResult
  public func updateKeepingDeadlines<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> Result
  ) async throws -> Result {
    try await updateKeepingDeadlines(deciding: keys) { slots in .commit(try body(&slots)) }
  }

  /// Reads and writes several values as one atomic step, and keeps the deadlines of live entries, if the body decides so.
  ///
  /// ```swift
  /// // Counts requests in windows of one minute that begin with the first request.
  /// let count = try await limits.updateKeepingDeadlines([client]) { counts in
  ///   counts[0] = (counts[0] ?? 0) + 1
  ///   return counts[0] ?? 0
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - body: A closure as that of `update` of a `DataStore`.
  /// - Returns: The result of the decision.
  /// - Throws: The errors of `update` of a `DataStore`.
  @discardableResult
  public func updateKeepingDeadlines<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    try await update(keys, timeToLive, keepsDeadlines: true) { slots in
      UpdateDecision(catching: { try body(&slots) })
    }.get()
  }

  /// Updates the base with a closure that sees only live values.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write.
  ///   - timeToLive: The time to live of new entries, or of all entries that are written.
  ///   - keepsDeadlines: A Boolean value that indicates whether an entry that replaces a live one keeps its deadline.
  ///   - body: A closure as that of `update` of a `DataStore`.
  func update<Result: Sendable>(
    _ keys: [StoreKey], _ timeToLive: TimeToLive, keepsDeadlines: Bool,
    deciding body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try timeToLive.check(for: .update, of: base.information)
    return try await operations.run(.update, of: base.information) {
      await purgeIfDue(beforeWriting: keys.count)
      return try await base.update(deciding: keys) { [self] slots in
        let now = now()
        let live = renewed(slots, of: keys).map { $0?.isLive(at: now) == true ? $0 : nil }
        var values = UpdateSlots(stored: live.map { $0?.value })
        let decision = body(&values)
        for index in decision.isCommit ? values.assignedIndices : [] {
          guard let value = values[index] else {
            slots[index] = nil
            continue
          }
          var deadline = timeToLive.deadline(from: now)
          if keepsDeadlines, let previous = live[index] {
            // A sliding deadline moves as by a read, because the entry is being used.
            deadline = previous.deadline?.moved(byReadAt: now) ?? previous.deadline
          }
          slots[index] = deadline?.isPast(at: now) == true ? nil : Expiring(value, deadline: deadline)
        }
        return decision
      }
    }
  }
}

extension ExpiringStore: ExpirableStore {
  /// Stores a value with a time to live; see `ExpirableStore`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - timeToLive: The time to live of the entry, or `nil` for the default of the store.
  /// - Throws: The errors of `apply(_:)`; `invalidArgument` if the time to live is invalid.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    var batch = ExpiringBatch<Value>()
    batch.setValue(value, forKey: key, timeToLive: timeToLive)
    try await apply(batch)
  }

  /// Updates a key as one step, and sets the time to live of a value that the closure assigns; see `ExpirableStore`.
  public func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await update([key], timeToLive ?? self.timeToLive, keepsDeadlines: false) { slots in body(&slots[0]) }
  }

  /// Returns the value of a key without moving a sliding deadline; see `ExpirableStore`.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    let now = now()
    let renewal = renewal(of: key)
    guard let entry = try await reporting(.value, { try await base.value(forKey: key) }) else { return nil }
    return entry.deadline(with: renewal)?.isPast(at: now) == true ? nil : entry.value
  }

  /// Gives an entry a new time to live, starting now, and leaves its value unchanged; see `ExpirableStore`.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - timeToLive: The new time to live, or `nil` for the default of the store. A date in the past removes the entry.
  /// - Returns: A Boolean value that indicates whether there was a live entry.
  /// - Throws: The errors of `update` of a `DataStore`; `invalidArgument` if the time to live is invalid.
  @discardableResult
  public func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    let (information, timeToLive) = (base.information, timeToLive ?? self.timeToLive)
    return try await reporting(.touch) {
      try await base.update(deciding: [key]) { [self] slots in
        let now = now()
        guard let entry = renewed(slots, of: [key])[0], entry.isLive(at: now) else { return .discard(false) }
        try timeToLive.check(for: .touch, of: information)
        let deadline = timeToLive.deadline(from: now)
        slots[0] = deadline?.isPast(at: now) == true ? nil : Expiring(entry.value, deadline: deadline)
        return .commit(true)
      }
    }
  }

  /// Returns the remaining time to live of an entry without moving its deadline; see `ExpirableStore`.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    let now = now()
    let renewal = renewal(of: key)
    guard let entry = try await reporting(.remainingTime, { try await base.value(forKey: key) }) else { return nil }
    guard let deadline = entry.deadline(with: renewal) else { return .never }
    return deadline.isPast(at: now) ? nil : .after(.microseconds(now.microseconds(until: deadline.time)))
  }

  /// Returns the time until the first of some entries expires, without moving a deadline; see `ExpirableStore`.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    let now = now()
    let pending = pendingRenewals(of: keys)
    let found = try await reporting(.remainingTime) { try await base.values(forKeys: keys) }
    var earliest: Duration?
    for (index, entry) in found.enumerated() {
      guard let entry else { return .zero }
      guard let deadline = entry.deadline(with: pending.isEmpty ? nil : pending[index]) else { continue }
      let remaining = Duration.microseconds(max(0, now.microseconds(until: deadline.time)))
      earliest = min(earliest ?? remaining, remaining)
    }
    return earliest
  }
}
