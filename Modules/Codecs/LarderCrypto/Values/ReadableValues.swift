#if Crypto
public import Larder

extension DataStore {
  /// Returns this store, after a check that its existing values can be read.
  ///
  /// A store opens with any key ring, and a write needs no existing value. Without this check, a program with a wrong
  /// ring or purpose notices it only when it reads, and may have written values by then that others cannot read. Call the
  /// method directly after opening:
  ///
  /// ```swift
  /// let users = try await LMDBStore<User>(
  ///   path: folder + "/users", codec: .cbor(User.self).encrypted(with: ring, purpose: "users")
  /// ).checkingValues()
  /// ```
  ///
  /// The check passes if the store has no entry, or if one of the first 16 values can be read. A single damaged value,
  /// or an old value whose key was removed, therefore does not prevent the start of a program. It reads nothing else,
  /// and writes nothing.
  ///
  /// - Returns: This store.
  /// - Throws: `StoreError` of the first value if no value can be read: `keyUnavailable` if the ring does not have its
  ///   key, `corrupted` if the purpose is another one or the value is damaged. The store is then closed, and with a
  ///   view its base. The errors of reading keys.
  @discardableResult
  public func checkingValues() async throws -> Self {
    var failure: (any Error)?
    do {
      for key in try await keys(in: .all, limit: 16, order: .ascending) {
        do {
          // An entry may have expired or been removed since.
          if try await value(forKey: key) != nil { return self }
        } catch let error as StoreError where error.isValueUnreadable {
          if failure == nil { failure = error }
        }
      }
    } catch {
      failure = error
    }
    guard let failure else { return self }
    try await close()
    throw failure
  }
}
#endif
