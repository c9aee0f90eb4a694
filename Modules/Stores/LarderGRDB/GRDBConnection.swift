#if GRDB
import GRDB
import Larder
import LarderFiles
import LarderSQLiteFormat

/// A connection of GRDB on which the catalog of stores runs its statements.
struct GRDBConnection: SQLConnection {
  let db: Database

  func run(_ sql: String) throws {
    try db.execute(sql: sql)
  }

  func rows(_ sql: String, _ arguments: String...) throws -> [[String]] {
    let rows = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: StatementArguments(arguments))
    var texts: [[String]] = []
    while let row = try rows.next() {
      texts.append(
        row.databaseValues.map {
          switch $0.storage {
          case .null: ""
          case .int64(let number): String(number)
          case .double(let number): String(number)
          case .string(let text): text
          case .blob(let bytes): String(decoding: bytes, as: UTF8.self)
          }
        })
    }
    return texts
  }
}

extension Database {
  /// The oldest version of SQLite that has strict tables.
  private static var oldestSQLite: [Int] { [3, 37] }

  /// Throws an error if SQLite is too old.
  ///
  /// - Throws: ``StoreError`` with `unsupported`.
  func checkSQLiteVersion(store: String) throws {
    let version = try String.fetchOne(self, sql: "SELECT sqlite_version()") ?? ""
    let numbers = version.split(separator: ".").compactMap { Int($0) }
    guard numbers.lexicographicallyPrecedes(Database.oldestSQLite) else { return }
    throw StoreError(
      .unsupported, during: .open, store: store,
      message: "the SQLite library has the version \(version); version 3.37 or later is needed")
  }

  /// The version of what this connection sees of the tables and their records.
  ///
  /// It changes when another connection has committed, and when this one changes a table.
  var contentVersion: ContentVersion {
    get throws {
      func number(_ pragma: String) throws -> Int64 {
        try Int64.fetchOne(cachedStatement(sql: "PRAGMA main.\(pragma)")) ?? 0
      }
      return ContentVersion(data: try number("data_version"), schema: try number("schema_version"))
    }
  }

  /// Runs a closure that reads several times, in one snapshot.
  func inSnapshot<Result>(_ body: () throws -> Result) throws -> Result {
    guard !isInsideTransaction else { return try body() }
    var result: Result?
    try inTransaction(.deferred) {
      result = try body()
      return .commit
    }
    guard let result else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
    return result
  }

  /// Runs a closure in a transaction that writes.
  ///
  /// It takes the lock before the closure runs, because a transaction that begins to write later fails if others have
  /// written in the meantime.
  ///
  /// - Throws: The error that `body` throws; `CommitFailure`.
  func inImmediateTransaction<Result>(
    _ body: () throws -> UpdateDecision<Result>
  ) throws -> UpdateDecision<Result> {
    try beginTransaction(.immediate)
    do {
      let decision = try body()
      guard decision.isCommit else {
        endTransaction()
        return decision
      }
      do { try commit() } catch { throw CommitFailure(error: error) }
      return decision
    } catch {
      endTransaction()
      throw error
    }
  }

  /// Rolls the open transaction back, unless something has ended it already.
  ///
  /// The error or the result of what was done in it matters more than a failure to end it.
  private func endTransaction() {
    if isInsideTransaction { try? rollback() }
  }

  /// Runs a closure in a savepoint of the open transaction.
  ///
  /// An error, and a decision to discard, undo what the closure has changed. If that fails, as in a task that is cancelled, or if SQLite has ended the
  /// savepoint already, the whole transaction is rolled back.
  ///
  /// Unlike `inSavepoint`, it keeps the statements compiled. This takes a fraction of the time.
  ///
  /// - Throws: The error that `body` throws; the errors of the connection.
  func inStoreSavepoint<Result>(
    _ body: () throws -> UpdateDecision<Result>
  ) throws -> UpdateDecision<Result> {
    try cachedStatement(sql: "SAVEPOINT larder").execute()
    do {
      let decision = try body()
      if decision.isCommit {
        try cachedStatement(sql: "RELEASE SAVEPOINT larder").execute()
      } else {
        undoStoreSavepoint()
      }
      return decision
    } catch {
      undoStoreSavepoint()
      throw error
    }
  }

  private func undoStoreSavepoint() {
    do {
      try cachedStatement(sql: "ROLLBACK TO SAVEPOINT larder").execute()
      try cachedStatement(sql: "RELEASE SAVEPOINT larder").execute()
    } catch {
      endTransaction()
    }
  }
}

/// The version of what a connection sees of the tables and their records.
struct ContentVersion: Sendable, Equatable {
  let data: Int64
  let schema: Int64
}

/// The error of a transaction that could not be committed.
struct CommitFailure: Error {
  let error: any Error

  /// A Boolean value that indicates whether the transaction may be in the database.
  ///
  /// The log may hold the whole transaction although the disk reported an error.
  var isUnknown: Bool { (error as? DatabaseError)?.resultCode == .SQLITE_IOERR }
}

/// The settings of a connection that decide what a commit survives.
struct GRDBSettings: Sendable {
  /// The maximum size of an encoded value, in bytes: SQLite's default limit of a row, less the key and a header.
  ///
  /// If a library was built with a lower limit, SQLite itself refuses larger values.
  static let maximumValueSize = 1_000_000_000 - 1024

  /// The journal mode in lower case, such as `wal` or `delete`.
  var journalMode: String

  /// 0 is OFF, 1 is NORMAL, 2 is FULL and 3 is EXTRA.
  var synchronous: Int

  /// A Boolean value that indicates whether a sync also flushes the write cache of the disk, which only Apple's systems
  /// tell apart.
  var flushesDisk: Bool

  /// The path of the file as SQLite has resolved it, or an empty string if the database has none.
  var file: String

  /// A Boolean value that indicates whether texts are stored in UTF-8, and not in UTF-16.
  var isUTF8: Bool

  /// A Boolean value that indicates whether the folder of the file can be synced.
  ///
  /// SQLite syncs the folder of a new log or journal, but reports no error if the program may not open the folder.
  var canSyncFolder = true

  /// A Boolean value that indicates whether the database has no file.
  var isInMemory: Bool { file.isEmpty }

  /// The durability of a commit when it returns.
  ///
  /// In the journal mode `delete`, a commit is durable when the removal of the journal is, which only EXTRA waits for;
  /// see [`synchronous`](https://sqlite.org/pragma.html#pragma_synchronous).
  var durability: Durability {
    if isInMemory { return .volatile }
    let sufficient =
      switch journalMode {
      case "wal", "truncate", "persist": 2
      case "delete": 3
      default: Int.max
      }
    return synchronous >= sufficient && flushesDisk && canSyncFolder ? .synced : .buffered
  }

  /// A Boolean value that indicates whether commits can be made durable later.
  ///
  /// With `synchronous = OFF` or without a journal on disk, power loss may damage the file whatever is synced.
  var canSynchronize: Bool {
    !isInMemory && synchronous >= 1 && ["wal", "truncate", "persist", "delete"].contains(journalMode)
  }

  /// Syncs all commits to disk.
  ///
  /// The database file itself is not opened, because closing it would release SQLite's locks.
  ///
  /// - Parameters:
  ///   - operation: The operation in errors.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``: `unsupported`; `ioFailed`.
  func synchronize(during operation: StoreOperation, store: String) throws {
    guard canSynchronize else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the database has the journal mode \(journalMode) and synchronous = \(synchronous), so its commits "
          + "cannot be made durable")
    }
    let fileSystem = POSIXFileSystem()
    do throws(FileError) {
      // SQLite syncs the database file itself. A commit ends in the log, or with the end or the removal of the journal. Both
      // are looked for, because another process may have changed the journal mode.
      for path in [DatabaseFiles.log, DatabaseFiles.journal].map({ file + $0.suffix })
      where try fileSystem.attributes(at: path) != nil {
        do throws(FileError) {
          try fileSystem.synchronizeFile(at: path)
        } catch {
          // A commit may have removed the journal in the meantime, as the folder tells.
          guard try fileSystem.attributes(at: path) == nil else { throw error }
        }
      }
      try fileSystem.synchronizeDirectory(at: FilePaths.split(file).directory)
    } catch {
      throw StoreError(
        error, during: operation, store: store, message: "the changes could not be made durable", outcome: .unknown)
    }
  }
}

extension GRDBSettings {
  /// Returns the database file for later comparisons, or an empty list if there isn't one that the file system knows.
  func openedFiles(store: String) throws -> OpenedFiles {
    var files = OpenedFiles()
    guard !isInMemory else { return files }
    do {
      if let identity = try POSIXFileSystem().identity(at: file) { files.note(identity, at: file, as: .data) }
    } catch {
      throw StoreError(error, during: .open, store: store, message: "the file of the database cannot be examined")
    }
    return files
  }

  /// Returns the size of the log, in bytes, or 0 if there isn't one.
  func logSize(store: String) throws -> Int64 {
    do {
      return try Int64(POSIXFileSystem().attributes(at: file + DatabaseFiles.log.suffix)?.size ?? 0)
    } catch {
      throw StoreError(error, during: .statistics, store: store, message: "the size of the log cannot be read")
    }
  }

  /// Asks a connection.
  init(of connection: GRDBConnection) throws {
    func number(_ sql: String) throws -> Int { Int(try connection.rows(sql).first?.first ?? "") ?? 0 }
    journalMode = try connection.rows("PRAGMA journal_mode").first?.first?.lowercased() ?? ""
    synchronous = try number("PRAGMA synchronous")
    #if canImport(Darwin)
    flushesDisk = try number("PRAGMA fullfsync") == 1
    #else
    flushesDisk = true
    #endif
    file = try connection.rows("SELECT file FROM pragma_database_list WHERE name = 'main'").first?.first ?? ""
    isUTF8 = try connection.rows("PRAGMA encoding") == [["UTF-8"]]
    guard durability == .synced else { return }
    do throws(FileError) {
      try POSIXFileSystem().synchronizeDirectory(at: FilePaths.split(file).directory)
    } catch {
      canSyncFolder = false
    }
  }
}

extension StoreError {
  /// Returns the error that a store throws for an error of GRDB.
  ///
  /// - Parameters:
  ///   - error: The error. Any error other than a `DatabaseError` is returned as it is; a `CommitFailure` is
  ///     unwrapped, and an `IgnoredChange` is described.
  ///   - operation: The operation of the store.
  ///   - store: The name of the store.
  ///   - message: A message that describes the failure, to which SQLite's own is added.
  ///   - isWrite: A Boolean value that indicates whether a write failed, after its table was checked. Defaults to
  ///     `false`.
  static func replacing(
    _ error: any Error, during operation: StoreOperation, store: String, _ message: String, isWrite: Bool = false
  ) -> any Error {
    if error is IgnoredChange {
      return StoreError(
        .notPermitted, during: operation, store: store,
        message:
          "the database ignored a change of an entry without an error; look for a trigger with RAISE(IGNORE) on the "
          + "table of the store")
    }
    let commitFailure = error as? CommitFailure
    guard let error = (commitFailure?.error ?? error) as? DatabaseError else { return commitFailure?.error ?? error }
    if error.resultCode == .SQLITE_MISUSE {
      return StoreError(
        .closed, during: operation, store: store, message: "the database was closed", underlying: error)
    }
    let code = error.extendedResultCode.rawValue
    var (storeCode, isRetryable) = (
      SQLiteResultCode.storeErrorCode(code, isWrite: isWrite), SQLiteResultCode.isTransient(code)
    )
    var reason = "\(error.message ?? "no message") (\(code))"
    if error.resultCode == .SQLITE_CANTOPEN, let descriptors = missingDescriptors() {
      (storeCode, isRetryable) = (.ioFailed, true)
      reason +=
        "; the process or the system has no file descriptor left (errno \(descriptors.errorNumber)), close files or "
        + "raise the limit"
    } else if error.extendedResultCode == .SQLITE_IOERR_SHMSIZE {
      // The index of the log cannot grow, which means that the disk is full: https://sqlite.org/rescode.html
      (storeCode, isRetryable) = (.full, true)
    }
    return StoreError(
      storeCode, during: operation, store: store, message: "\(message): \(reason)", underlying: error,
      isRetryable: isRetryable, outcome: commitFailure?.isUnknown == true ? .unknown : .nothingChanged)
  }

  /// Returns the error of opening any file if no file descriptor is left, or `nil`.
  ///
  /// SQLite does not say why it cannot open a file, and GRDB does not pass on the reason of the system.
  private static func missingDescriptors() -> FileError? {
    do throws(FileError) {
      try POSIXFileSystem().open("/dev/null", .read).close()
      return nil
    } catch {
      return error.isTransient ? error : nil
    }
  }
}
#endif
