public import Larder

extension CachedStore: InvalidatableStore {
  /// Forgets the copy of one key, so that the next read takes it from the base.
  ///
  /// Loads of the key that run no longer come into the cache, and later readers do not join them. Copies that the base
  /// may keep itself stay.
  ///
  /// - Parameter key: The key.
  /// - Throws: `StoreError`: `invalidKey`; `closed`.
  public func invalidate(_ key: StoreKey) throws {
    try ownInformation.check(key, for: .invalidate)
    try checkOpen(for: .invalidate)
    cache.invalidate(key)
  }

  /// Forgets all copies; see ``invalidate(_:)``.
  ///
  /// - Throws: `StoreError`: `closed`.
  public func invalidateAll() throws {
    try checkOpen(for: .invalidateAll)
    cache.invalidateAll()
  }
}

/// A cache belongs below a store whose entries expire: above it, it may serve what has expired since it was read.
extension CachedStore: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime in the base, and forgets its copy; see `ExpirableStore`.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    try ownInformation.check(key, for: .touch)
    return try await writing([key], [], .touch) { _ in try await base.touch(key, lifetime: lifetime) }
  }

  /// Tells how long an entry of the base has still to live, and forgets the copy of one that is missing; see
  /// `ExpirableStore`.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    let time = try await base.remainingTime(forKey: key)
    if time == nil { cache.invalidate(key) }
    return time
  }

  /// Removes entries from the base that have expired, and forgets all copies; see `ExpirableStore`.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await writing([], [.all], .purgeExpired) { _ in try await base.purgeExpired(limit: limit) }
  }
}

extension CachedStore: FlushableStore where Base: FlushableStore {
  /// Waits until everything that the base accepted before has been written below; see `FlushableStore`.
  public func flush() async throws {
    try await base.flush()
  }
}
