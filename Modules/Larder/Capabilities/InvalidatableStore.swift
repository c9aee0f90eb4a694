/// A store that caches entries of its base.
///
/// Decorators forward this capability, so you can use it on any stack that contains a cache.
///
/// ```swift
/// func openUsers(in folder: String) async throws -> some DataStore<User> & InvalidatableStore {
///   try await JSONFileStore<User>(path: folder + "/users.json").cached()
/// }
/// ```
public protocol InvalidatableStore<Value>: DataStore {
  /// Removes the entry of a key from the cache, so the next read takes it from the base.
  ///
  /// The base keeps its entry. A read that began before the call may still return the value that it found.
  ///
  /// ```swift
  /// try users.invalidate("user:7")  // another program has changed this user
  /// ```
  ///
  /// - Parameter key: The key.
  /// - Throws: ``StoreError`` with `invalidKey`; `closed`.
  func invalidate(_ key: StoreKey) throws

  /// Removes all entries from the cache; see ``invalidate(_:)``.
  ///
  /// ```swift
  /// try users.invalidateAll()  // the file was restored from a backup
  /// ```
  ///
  /// - Throws: ``StoreError`` with `closed`.
  func invalidateAll() throws
}
