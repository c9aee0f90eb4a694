extension TypedView: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime; see ``ExpirableStore/touch(_:lifetime:)``.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    let storedKey = try storedKey(key, for: .touch)
    return try await seen { try await base.touch(storedKey, lifetime: lifetime) }
  }

  /// Tells how long an entry has still to live; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    let storedKey = try storedKey(key, for: .remainingTime)
    return try await seen { try await base.remainingTime(forKey: storedKey) }
  }

  /// Removes entries that have expired, in all of the store below; see ``ExpirableStore/purgeExpired(limit:)``.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await seen { try await base.purgeExpired(limit: limit) }
  }
}

extension TypedView: InvalidatableStore where Base: InvalidatableStore {
  /// Forgets the copy of one key; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    let storedKey = try storedKey(key, for: .invalidate)
    try seen { try base.invalidate(storedKey) }
  }

  /// Forgets all copies, those of other views too; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try seen { try base.invalidateAll() }
  }
}

extension TypedView: FlushableStore where Base: FlushableStore {
  /// Waits until everything accepted before has been written, in all of the store below; see
  /// ``FlushableStore/flush()``.
  public func flush() async throws {
    try await seen { try await base.flush() }
  }
}
