/// A purge removes expired entries from the whole base.
extension TypedView: ExpirableStore where Base: ExpirableStore {
  /// Stores a value and sets its time to live; see ``ExpirableStore/setValue(_:forKey:timeToLive:)``.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    let storedKey = try storedKey(key, for: .apply)
    try information.checkWritable(for: .apply)
    let bytes = try encode(value, storedAs: storedKey, during: .apply)
    try await translatingErrors { try await base.setValue(bytes, forKey: storedKey, timeToLive: timeToLive) }
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
    let storedKey = try storedKey(key, for: .touch)
    return try await translatingErrors { try await base.touch(storedKey, timeToLive: timeToLive) }
  }

  /// Returns the remaining time to live of an entry; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    let storedKey = try storedKey(key, for: .remainingTime)
    return try await translatingErrors { try await base.remainingTime(forKey: storedKey) }
  }

  /// Returns the time until the first of some entries expires; see ``ExpirableStore/timeUntilExpiry(ofAny:)``.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    try information.check(keys, for: .remainingTime)
    return try await translatingErrors { try await base.timeUntilExpiry(ofAny: keys.map(storedKey)) }
  }
}

extension TypedView: InvalidatableStore where Base: InvalidatableStore {
  /// Removes the entry of a key from the cache; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    let storedKey = try storedKey(key, for: .invalidate)
    try translatingErrors { try base.invalidate(storedKey) }
  }

  /// Removes all entries from the cache, including those of other views; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try translatingErrors { try base.invalidateAll() }
  }
}

/// A view reports the changes of its own entries, with the keys of the view.
extension TypedView: ObservableStore where Base: ObservableStore {
  /// Observes a range of the view; see ``ObservableStore/observe(_:_:)``.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    let view = KeyTranslation(prefix: prefix)
    // From the prefix itself, so that a change of all keys is one of all keys of the view.
    let observed = KeyRange(from: storedKey(range.lowerBound), upTo: storedRange(range).upperBound)
    return base.observe(observed) { event in
      switch event {
      case .changed(let changes):
        let translated = changes.compactMap(view.change)
        if !translated.isEmpty { observer(.changed(translated)) }
      case .closed: observer(.closed)
      }
    }
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
    var statistics = try await translatingErrors { try await base.storeStatistics() }
    statistics.entryCount = try await count(in: .all)
    return statistics
  }

  /// Reads and decodes every value of the view; see ``MaintainableStore/verify()``.
  public func verify() async throws -> VerificationReport {
    try await verifyEachEntry()
  }
}
