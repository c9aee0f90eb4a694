/// A store over the entries of another one whose keys begin with a prefix, which its own keys are without.
///
/// Each key is translated on its way to the base, and each key in a result, an error, a report or a finding is translated
/// back, with every capability of the base. So the entries of one tenant can be kept apart from those of another:
///
/// ```swift
/// let sessions = allSessions.prefixed(by: "tenant7/")
/// try await sessions.setValue(session, forKey: "42")     // stored as "tenant7/42"
/// try await sessions.removeAll()                         // removes the sessions of tenant 7
/// ```
///
/// It separates keys, and does not guard the base against a program that has it: ``base`` is the whole store. Some operations
/// exist for a whole store only: ``ExpirableStore/purgeExpired(limit:)``, ``InvalidatableStore/invalidateAll()``,
/// ``FlushableStore/flush()``, ``MaintainableStore/compact()``, ``MaintainableStore/backup(to:compacting:)`` and
/// ``DataStore/close()`` concern all entries of the base, and the size in ``MaintainableStore/storeStatistics()`` is that of the
/// base.
///
/// No prefix may begin with another one of the same base. For a store of bytes with values of several types, use a
/// ``TypedView``. It has a prefix too. To do something else in a decorator that changes keys, put a ``ForwardingStore`` over
/// this one.
public struct KeyMappingStore<Base: DataStore>: DataStore {
  /// The type of the values.
  public typealias Value = Base.Value

  /// The store that has the entries.
  public let base: Base

  /// The prefix of the keys in the base.
  public let prefix: KeyPrefix

  /// The information of the base, with the maximum length of a key of this store.
  public let information: StoreInformation

  /// Creates a store over the entries of another one.
  ///
  /// - Parameters:
  ///   - base: The store that has the entries.
  ///   - prefix: The prefix of the keys in the base, by which the maximum length of a key decreases.
  public init(_ base: Base, prefix: StoreKey) {
    self.base = base
    self.prefix = KeyPrefix(prefix)
    var information = base.information
    information.identity = information.identity?.view(withPrefix: prefix)
    information.maximumKeyLength = max(0, information.maximumKeyLength - prefix.count)
    self.information = information
  }

  private init(_ base: Base, prefix: KeyPrefix, information: StoreInformation) {
    (self.base, self.prefix, self.information) = (base, prefix, information)
  }

  // MARK: Reading

  /// Returns the value of a key; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    let key = try storedKey(key, for: .value)
    return try await translatingErrors { try await base.value(forKey: key) }
  }

  /// Returns the values of several keys as they are at one moment; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await translatingErrors { try await base.values(forKeys: keys.map(prefix.storedKey)) }
  }

  /// Returns the first entries of a range; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    let entries = try await translatingErrors {
      try await base.entries(in: prefix.storedRange(range), limit: limit, order: order)
    }
    return entries.map { StoreEntry(key: prefix.withoutPrefix($0.key), value: $0.value) }
  }

  /// Returns the first keys of a range; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await translatingErrors {
      try await base.keys(in: prefix.storedRange(range), limit: limit, order: order).map(prefix.withoutPrefix)
    }
  }

  /// Returns the number of entries in a range; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await translatingErrors { try await base.count(in: prefix.storedRange(range)) }
  }

  // MARK: Writing

  /// Applies several changes atomically; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    let stored = ChangeBatch(
      changes.changes.map { change -> BatchChange<Value> in
        switch change {
        case .set(let key, let value): .set(prefix.storedKey(key), value)
        case .remove(let key): .remove(prefix.storedKey(key))
        case .removeAll(let range): .removeAll(prefix.storedRange(range))
        }
      })
    try await translatingErrors { try await base.apply(stored) }
  }

  /// Reads, changes and writes back the values of several keys as one step; see ``DataStore/update(deciding:_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await translatingErrors { try await base.update(deciding: keys.map(prefix.storedKey), body) }
  }

  /// Ensures that every earlier write to the base survives a power failure; see ``DataStore/synchronize()``.
  public func synchronize() async throws {
    try await translatingErrors { try await base.synchronize() }
  }

  /// Closes the base, and with it all other stores over the base; see ``DataStore/close()``.
  public func close() async throws {
    try await translatingErrors { try await base.close() }
  }

  // MARK: Keys

  /// Returns the key of the base for a key.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`.
  private func storedKey(_ key: StoreKey, for operation: StoreOperation) throws -> StoreKey {
    try information.check(key, for: operation)
    return prefix.storedKey(key)
  }

  /// Runs an operation of the base, and translates the keys in its errors.
  private func translatingErrors<Result>(_ operation: () async throws -> Result) async throws -> Result {
    do {
      return try await operation()
    } catch let error as StoreError {
      throw error.translated(by: prefix, store: information.name)
    }
  }
}

extension KeyMappingStore: StoreDecorator {
  /// Performs an operation of a capability on the base, and translates the keys in its errors.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await translatingErrors(body)
  }
}

/// A purge removes expired entries from the whole base.
extension KeyMappingStore: ExpirableStore where Base: ExpirableStore {
  /// Stores a value and sets its time to live; see ``ExpirableStore/setValue(_:forKey:timeToLive:)``.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    let key = try storedKey(key, for: .apply)
    try await translatingErrors { try await base.setValue(value, forKey: key, timeToLive: timeToLive) }
  }

  /// Updates a key, with a time to live; see ``ExpirableStore/update(deciding:timeToLive:_:)``.
  public func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Result>
  ) async throws -> Result {
    let key = try storedKey(key, for: .update)
    return try await translatingErrors { try await base.update(deciding: key, timeToLive: timeToLive, body) }
  }

  /// Returns a value without moving a sliding deadline; see ``ExpirableStore/peekValue(forKey:)``.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    let key = try storedKey(key, for: .value)
    return try await translatingErrors { try await base.peekValue(forKey: key) }
  }

  /// Gives an entry a new time to live; see ``ExpirableStore/touch(_:timeToLive:)``.
  @discardableResult
  public func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    let key = try storedKey(key, for: .touch)
    return try await translatingErrors { try await base.touch(key, timeToLive: timeToLive) }
  }

  /// Returns the remaining time to live of an entry; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    let key = try storedKey(key, for: .remainingTime)
    return try await translatingErrors { try await base.remainingTime(forKey: key) }
  }

  /// Returns the time until the first of some entries expires; see ``ExpirableStore/timeUntilExpiry(ofAny:)``.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    try information.check(keys, for: .remainingTime)
    return try await translatingErrors { try await base.timeUntilExpiry(ofAny: keys.map(prefix.storedKey)) }
  }
}

extension KeyMappingStore: InvalidatableStore where Base: InvalidatableStore {
  /// Removes the entry of a key from the cache; see ``InvalidatableStore/invalidate(_:)``.
  ///
  /// ```swift
  /// let users = cache.prefixed(by: "user/")
  /// try users.invalidate("7")  // removes "user/7" from the cache
  /// ```
  public func invalidate(_ key: StoreKey) throws {
    let stored = try storedKey(key, for: .invalidate)
    do {
      try base.invalidate(stored)
    } catch let error as StoreError {
      throw error.translated(by: prefix, store: information.name)
    }
  }
}

/// The store reports the changes of its own entries, with its own keys.
extension KeyMappingStore: ObservableStore where Base: ObservableStore {
  /// Observes a range of the store; see ``ObservableStore/observe(_:_:)``.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    base.observe(prefix.storedRange(range)) { [prefix] event in
      switch event {
      case .changed(let changes):
        let changes = changes.compactMap(prefix.change(ofStored:))
        if !changes.isEmpty { observer(.changed(changes)) }
      case .closed: observer(.closed)
      }
    }
  }

  /// Returns a closure that returns this store as long as something else holds the base.
  public func weakReference() -> @Sendable () -> Self? {
    let (base, prefix, information) = (base.weakReference(), prefix, information)
    return { base().map { KeyMappingStore($0, prefix: prefix, information: information) } }
  }
}

extension KeyMappingStore: FlushableStore where Base: FlushableStore {}

/// Statistics and verification cover the entries of the store. Compaction and backup cover the whole base.
extension KeyMappingStore: MaintainableStore where Base: MaintainableStore {
  /// Returns the size of the base, but with the number of entries of the store; see
  /// ``MaintainableStore/storeStatistics()``.
  public func storeStatistics() async throws -> StoreStatistics {
    var statistics = try await translatingErrors { try await base.storeStatistics() }
    statistics.entryCount = try await count(in: .all)
    return statistics
  }

  /// Verifies the base, and returns the findings about this store's entries and those without a key; see
  /// ``MaintainableStore/verify()``.
  public func verify() async throws -> VerificationReport {
    var report = try await translatingErrors { try await base.verify() }
    report.findings = report.findings.compactMap { finding in
      guard let key = finding.key else { return finding }
      guard let own = prefix.key(ofStored: key) else { return nil }
      var finding = finding
      finding.key = own
      return finding
    }
    do {
      report.entryCount = try await count(in: .all)
    } catch let error as StoreError where error.isValueUnreadable {
      // Damage keeps the entries from being counted, and is among the findings. The number stays that of the base.
    }
    return report
  }
}

extension DataStore {
  /// Returns a store over the entries of this one whose keys begin with a prefix; see ``KeyMappingStore``.
  ///
  /// ```swift
  /// let tenant = store.prefixed(by: "tenant7/")
  /// let users = try await tenant.keys(in: .all, limit: 10, order: .ascending)  // without the prefix
  /// ```
  ///
  /// - Parameter prefix: The prefix that the keys of the store are without.
  public func prefixed(by prefix: StoreKey) -> KeyMappingStore<Self> {
    KeyMappingStore(self, prefix: prefix)
  }
}
