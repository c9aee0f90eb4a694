public import LarderFiles

/// The names of the files of an SQLite database.
///
/// Source: section 2 of ["Temporary Files Used By SQLite"](https://sqlite.org/tempfiles.html).
public enum DatabaseFiles {
  /// The write-ahead log, which has the latest commits.
  public static let log = StoreFileSet.Companion(
    suffix: "-wal", role: .content, summary: "the write-ahead log of a database")

  /// The rollback journal, with which SQLite undoes a transaction that was interrupted.
  public static let journal = StoreFileSet.Companion(
    suffix: "-journal", role: .content, summary: "the rollback journal of a database")

  /// The index of the log, on which SQLite keeps its locks.
  public static let index = StoreFileSet.Companion(
    suffix: "-shm", role: .content, summary: "the index of the write-ahead log of a database")

  /// Returns all files of a database.
  ///
  /// ```swift
  /// try DatabaseFiles.all(at: "shop.sqlite").checkFree(during: .restore, store: "shop", in: POSIXFileSystem())
  /// ```
  ///
  /// - Parameter path: The path of the database file.
  /// - Returns: The database file and its companions.
  public static func all(at path: String) -> StoreFileSet {
    StoreFileSet(at: path, companions: [log, journal, index])
  }
}
