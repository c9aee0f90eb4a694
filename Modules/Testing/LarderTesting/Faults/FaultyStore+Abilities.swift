public import Larder

extension FaultyStore: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime; see `ExpirableStore`.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    try await withFaults(of: .touch, key: key) { try await base.touch(key, lifetime: lifetime) }
  }

  /// Tells how long an entry has still to live; see `ExpirableStore`.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    try await withFaults(of: .remainingTime, key: key) { try await base.remainingTime(forKey: key) }
  }

  /// Removes entries that have expired; see `ExpirableStore`.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await withFaults(of: .purgeExpired) { try await base.purgeExpired(limit: limit) }
  }
}

/// Forgetting is no operation that can go wrong here: it does not wait.
extension FaultyStore: InvalidatableStore where Base: InvalidatableStore {
  /// Forgets the copy of one key; see `InvalidatableStore`.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Forgets all copies; see `InvalidatableStore`.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}

extension FaultyStore: FlushableStore where Base: FlushableStore {
  /// Waits until everything accepted before has been written; see `FlushableStore`.
  public func flush() async throws {
    try await withFaults(of: .flush) { try await base.flush() }
  }
}
