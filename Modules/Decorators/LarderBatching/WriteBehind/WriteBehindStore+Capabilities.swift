public import Larder
import Synchronization

extension WriteBehindStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "WriteBehindStore[\(base)]" }
}

extension WriteBehindStore: FlushableStore {
  /// Waits until everything accepted before has been written to the base; see ``FlushableStore/flush()``.
  ///
  /// - Throws: ``StoreError`` of the first write that was given up and not taken by ``takeFailures()``; `closed`.
  public func flush() async throws {
    try await waitForFlush(during: .flush)
    try throwFirstError()
  }
}

extension WriteBehindStore: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime in the base, after everything before has been written; see
  /// ``ExpirableStore/touch(_:lifetime:)``.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    try await inTurn(during: .touch) { try await base.touch(key, lifetime: lifetime) }
  }

  /// Asks the base how long an entry has still to live, where a change to it is pending after writing that; see
  /// ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    let content = try withOpenQueue(for: .remainingTime) { $0[key] }
    if content == nil { return try await base.remainingTime(forKey: key) }
    return try await inTurn(during: .remainingTime, changesBase: false) {
      try await base.remainingTime(forKey: key)
    }
  }

  /// Lets the base remove what has expired, at once: it never removes what was written anew.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await base.purgeExpired(limit: limit)
  }
}

extension WriteBehindStore: InvalidatableStore where Base: InvalidatableStore {
  /// Lets the base forget its copy of one key; see ``InvalidatableStore/invalidate(_:)``.
  ///
  /// What was accepted and not yet written is no copy, and stays.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Lets the base forget all copies; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}

/// The maintenance of a base below a ``WriteBehindStore``, which first gets what was accepted.
struct WriteBehindMaintenance: StoreMaintenance {
  let base: any StoreMaintenance
  let drain: @Sendable () async -> Void

  func statistics() async throws -> StoreStatistics {
    await drain()
    return try await base.statistics()
  }

  func verify() async throws -> VerificationReport {
    await drain()
    return try await base.verify()
  }

  func compact() async throws {
    await drain()
    try await base.compact()
  }

  func backup(to path: String, compacting: Bool) async throws {
    await drain()
    try await base.backup(to: path, compacting: compacting)
  }
}
