public import Larder

/// Writes that say when their entry expires, and what else concerns deadlines.
extension ExpiringStore {
  /// Puts a value under a key, in place of any other, and says when it expires.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - expiration: When it expires.
  /// - Throws: As `apply(_:)`; `invalidArgument` where the expiration makes no sense.
  public func setValue(_ value: Value, forKey key: StoreKey, expires expiration: Expiration) async throws {
    var batch = ExpiringBatch<Value>()
    batch.setValue(value, forKey: key, expires: expiration)
    try await apply(batch)
  }

  /// Puts a value under a key, and leaves the deadline of the live entry in whose place it comes.
  ///
  /// Where there is none, also since it has expired, the entry gets the expiration of the store. A deadline that slides is put
  /// off as by a read.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: As `update`.
  public func setValueKeepingDeadline(_ value: Value, forKey key: StoreKey) async throws {
    try await updateKeepingDeadlines([key]) { $0[0] = value }
  }

  /// Reads, changes and writes back the values of some keys as one step, and says when they expire.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write; no key may stand twice.
  ///   - expiration: When everything that `body` leaves expires, also what it has not changed.
  ///   - body: As that of `update` of a `DataStore`.
  /// - Returns: What `body` returned.
  /// - Throws: As `update` of a `DataStore`; `invalidArgument` where the expiration makes no sense.
  public func update<Result: Sendable>(
    _ keys: [StoreKey], expires expiration: Expiration,
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await update(keys, DeadlineRule(expiration: expiration, keepsDeadlines: false), body)
  }

  /// Reads, changes and writes back the values of some keys as one step, and leaves the deadlines of those that are there.
  ///
  /// What is new gets the expiration of the store, also in place of what has expired. Deadlines that slide are put off as by
  /// a read.
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
  ///   - keys: The keys to read and write; no key may stand twice.
  ///   - body: As that of `update` of a `DataStore`.
  /// - Returns: What `body` returned.
  /// - Throws: As `update` of a `DataStore`.
  public func updateKeepingDeadlines<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await update(keys, DeadlineRule(expiration: expiration, keepsDeadlines: true), body)
  }

  /// Gives an entry a new expiration, from now on, and leaves its value as it is.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - expiration: When it expires; a date that has come removes it.
  /// - Returns: Whether there was a live entry.
  /// - Throws: As `update` of a `DataStore`; `invalidArgument` where the expiration makes no sense.
  @discardableResult
  public func touch(_ key: StoreKey, expires expiration: Expiration) async throws -> Bool {
    try await touch(key) { _ in expiration }
  }

  /// Gives a live entry another expiration.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - choose: Gets the deadline that it has, `nil` for none, and chooses.
  private func touch(_ key: StoreKey, _ choose: @escaping @Sendable (Deadline?) -> Expiration) async throws -> Bool {
    let information = base.information
    do {
      return try await reporting(.touch) {
        try await base.update([key]) { [self] slots in
          let now = now()
          applyRenewals(to: &slots, of: [key])
          guard let entry = slots[0], entry.isLive(at: now) else { throw NothingToChange() }
          let expiration = choose(entry.deadline)
          try expiration.check(for: .touch, of: information)
          let deadline = expiration.deadline(from: now)
          slots[0] = deadline?.isPast(at: now) == true ? nil : Expiring(entry.value, deadline: deadline)
          return true
        }
      }
    } catch is NothingToChange {
      return false
    }
  }

  /// Updates the base, and shows `body` only what is live.
  func update<Result: Sendable>(
    _ keys: [StoreKey], _ rule: DeadlineRule, _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    let information = base.information
    try rule.expiration.check(for: .update, of: information)
    return try await writing(keys.count, for: .update) {
      try await base.update(keys) { [self] slots in
        let now = now()
        applyRenewals(to: &slots, of: keys)
        for index in slots.indices where slots[index]?.isLive(at: now) == false { slots[index] = nil }
        var values = slots.map { $0?.value }
        let result = try body(&values)
        try information.check(slotCount: values.count, forUpdateOf: keys)
        for index in slots.indices {
          guard let value = values[index] else {
            slots[index] = nil
            continue
          }
          let deadline = rule.deadline(inPlaceOf: slots[index], at: now)
          slots[index] = deadline?.isPast(at: now) == true ? nil : Expiring(value, deadline: deadline)
        }
        return result
      }
    }
  }
}

extension ExpiringStore: ExpirableStore {
  /// Gives an entry a new lifetime, from now on, and leaves its value as it is; see `ExpirableStore`.
  ///
  /// A deadline that slides goes on to, with the lifetime as its window.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - lifetime: The new lifetime; `nil` for the expiration of the store.
  /// - Returns: Whether there was a live entry.
  /// - Throws: As `update` of a `DataStore`; `invalidArgument` where the lifetime is limited to zero or less.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    let expiration = expiration
    return try await touch(key) { deadline in
      switch lifetime {
      case nil: expiration
      case .unlimited: .never
      case .limited(let duration): deadline?.window == nil ? .after(duration) : .sliding(duration)
      }
    }
  }

  /// Tells how long an entry has still to live, and does not put off its deadline; see `ExpirableStore`.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    let now = now()
    let renewal = renewal(of: key)
    guard let entry = try await reporting(.remainingTime, { try await base.value(forKey: key) }) else { return nil }
    guard let deadline = entry.deadline(with: renewal) else { return .unlimited }
    return deadline.isPast(at: now) ? nil : .limited(.microseconds(now.microseconds(until: deadline.time)))
  }
}

/// Which deadlines a write gives.
struct DeadlineRule: Sendable {
  /// The expiration of what is new, or of everything.
  let expiration: Expiration

  /// Whether an entry that takes the place of a live one gets its deadline.
  let keepsDeadlines: Bool

  /// The deadline of a value that is written now; `nil` where it does not expire.
  ///
  /// - Parameters:
  ///   - previous: The live entry in whose place it comes, or `nil` where there is none.
  ///   - now: The time.
  func deadline<Value>(inPlaceOf previous: Expiring<Value>?, at now: WallTime) -> Deadline? {
    guard keepsDeadlines, let previous else { return expiration.deadline(from: now) }
    // One that slides moves on as by a read: the entry is being used.
    return previous.deadline?.moved(byReadAt: now) ?? previous.deadline
  }
}
