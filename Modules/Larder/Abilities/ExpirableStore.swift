/// A store whose entries may expire: what expiry adds to ``DataStore``.
///
/// Expired is absent, in every operation. A decorator over such a store is one too, so that what is here works from the
/// outside of a stack.
public protocol ExpirableStore<Value>: DataStore {
  /// Gives an entry a new lifetime, from now on, and leaves its value as it is.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - lifetime: The new lifetime; `nil` for the one that a write without a lifetime would give it.
  /// - Returns: Whether there was a live entry.
  /// - Throws: ``StoreError`` and `CancellationError`, as ``DataStore/apply(_:)``; `invalidArgument` where the lifetime is
  ///   limited to zero or less.
  @discardableResult
  func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool

  /// Tells how long an entry has still to live.
  ///
  /// - Parameter key: The key of the entry.
  /// - Returns: The time left, or `nil` where the key is missing, which it is too where it has expired.
  /// - Throws: ``StoreError``, as ``DataStore/value(forKey:)``.
  func remainingTime(forKey key: StoreKey) async throws -> Lifetime?

  /// Removes entries that have expired, and thereby gives back their space.
  ///
  /// It never removes an entry that was written anew meanwhile.
  ///
  /// - Parameter limit: The most entries to remove; `Int.max` for all that have expired.
  /// - Returns: How many were removed.
  /// - Throws: ``StoreError`` and `CancellationError`, as ``DataStore/apply(_:)``; `invalidArgument` where the limit is
  ///   negative.
  @discardableResult
  func purgeExpired(limit: Int) async throws -> Int
}

extension ExpirableStore {
  /// Gives an entry the lifetime that a write without one would give it; see ``touch(_:lifetime:)``.
  ///
  /// - Parameter key: The key of the entry.
  /// - Returns: Whether there was a live entry.
  /// - Throws: As ``touch(_:lifetime:)``.
  @discardableResult
  public func touch(_ key: StoreKey) async throws -> Bool {
    try await touch(key, lifetime: nil)
  }

  /// Removes all entries that have expired; see ``purgeExpired(limit:)``.
  ///
  /// - Returns: How many were removed.
  /// - Throws: As ``purgeExpired(limit:)``.
  @discardableResult
  public func purgeExpired() async throws -> Int {
    try await purgeExpired(limit: .max)
  }
}
