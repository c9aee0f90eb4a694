extension TypedView {
  /// The entries of the view as bytes, with the keys of the view.
  private var storedEntries: KeyMappingStore<Base> { base.prefixed(by: prefix) }
}

/// A purge removes expired entries from the whole base.
extension TypedView: ExpirableStore where Base: ExpirableStore {
  /// Stores a value and sets its time to live; see ``ExpirableStore/setValue(_:forKey:timeToLive:)``.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    let storedKey = try storedKey(key, for: .apply)
    try information.checkWritable(for: .apply)
    let bytes = try encode(value, storedAs: storedKey, during: .apply)
    try await translatingErrors { try await base.setValue(bytes, forKey: storedKey, timeToLive: timeToLive) }
  }

  /// Updates a key, with a time to live; see ``ExpirableStore/update(deciding:timeToLive:_:)``.
  public func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Result>
  ) async throws -> Result {
    let storedKey = try storedKey(key, for: .update)
    try information.checkWritable(for: .update)
    return try await translatingErrors {
      try await base.update(deciding: storedKey, timeToLive: timeToLive) { [self] stored in
        UpdateDecision(catching: {
          var value = try stored.map { try decode($0, storedAs: storedKey, during: .update) }
          let decision = body(&value)
          guard decision.isCommit else { return decision }
          stored = try value.map { try encode($0, storedAs: storedKey, replacing: stored, during: .update) }
          return decision
        })
      }.get()
    }
  }

  /// Returns a value without moving a sliding deadline; see ``ExpirableStore/peekValue(forKey:)``.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    let storedKey = try storedKey(key, for: .value)
    return try await reads.run(.value, of: information) {
      let bytes = try await translatingErrors { try await base.peekValue(forKey: storedKey) }
      return try bytes.map { try decode($0, storedAs: storedKey, during: .value) }
    }
  }

  /// Gives an entry a new time to live; see ``ExpirableStore/touch(_:timeToLive:)``.
  @discardableResult
  public func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    try await storedEntries.touch(key, timeToLive: timeToLive)
  }

  /// Returns the remaining time to live of an entry; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    try await storedEntries.remainingTime(forKey: key)
  }

  /// Returns the time until the first of some entries expires; see ``ExpirableStore/timeUntilExpiry(ofAny:)``.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    try await storedEntries.timeUntilExpiry(ofAny: keys)
  }
}

extension TypedView: InvalidatableStore where Base: InvalidatableStore {
  /// Removes the entry of a key from the cache; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    try storedEntries.invalidate(key)
  }
}

/// A view reports the changes of its own entries, with the keys of the view.
extension TypedView: ObservableStore where Base: ObservableStore {
  /// Observes a range of the view; see ``ObservableStore/observe(_:_:)``.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    storedEntries.observe(range, observer)
  }

  /// Returns a closure that returns this view as long as something else holds the base.
  public func weakReference() -> @Sendable () -> Self? {
    let (base, prefix, information) = (base.weakReference(), prefix, information)
    let (coder, recordsCodec, reads) = (coder, recordsCodec, reads)
    return {
      base().map {
        TypedView(
          base: $0, prefix: prefix, coder: coder, recordsCodec: recordsCodec, information: information, reads: reads)
      }
    }
  }
}

extension TypedView: FlushableStore where Base: FlushableStore {}

/// Statistics and verification cover the entries of the view. Compaction and backup cover the whole base.
extension TypedView: MaintainableStore where Base: MaintainableStore {
  /// Returns the size of the base, but with the number of entries of the view; see
  /// ``MaintainableStore/storeStatistics()``.
  public func storeStatistics() async throws -> StoreStatistics {
    try await storedEntries.storeStatistics()
  }

  /// Reads and decodes every value of the view; see ``MaintainableStore/verify()``.
  public func verify() async throws -> VerificationReport {
    try await verifyEachEntry()
  }
}
