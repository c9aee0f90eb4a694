/// What a store may do with the files that it opens.
///
/// ```swift
/// let store = try await JSONFileStore<User>(path: "users.json", access: .readOnly)
/// ```
public enum StoreAccess: Sendable, Hashable, CaseIterable {
  /// The store reads and writes. The default.
  case readWrite

  /// The store only reads, and leaves every file as it is: no file is created, and no owner or permission is changed.
  ///
  /// It works on a read-only mount, in an app bundle and on another user's file. If the store has a lock file, the reader
  /// takes part in locking; opening throws ``StoreError/Code/locked`` while a writer has a store open that only one may
  /// have open. Every write throws ``StoreError/Code/notPermitted``.
  case readOnly

  /// The store only reads, and takes no lock: you promise that no one writes to the files while it is open.
  ///
  /// Use it for files that cannot change, such as those on a read-only medium. If the files change all the same, reads
  /// return wrong entries or fail.
  case immutable
}
