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
  /// Runs a closure in a transaction that writes.
  ///
  /// It takes the lock before the closure runs, because a transaction that begins to write later fails if others have
  /// written in the meantime.
  ///
  /// - Throws: The error that `body` throws; `CommitFailure`.
  func inImmediateTransaction<Result>(_ body: () throws -> Result) throws -> Result {
    try beginTransaction(.immediate)
    do {
      let result = try body()
      do { try commit() } catch { throw CommitFailure(error: error) }
      return result
    } catch {
      // Some errors have ended the transaction already. The first error matters more than a failure to end it.
      if isInsideTransaction { try? rollback() }
      throw error
    }
  }
}

/// The error of a transaction that could not be committed.
struct CommitFailure: Error {
  let error: any Error
}

/// The settings of a connection that decide what a commit survives.
struct GRDBSettings: Sendable, Equatable {
  /// The maximum size of an encoded value, in bytes: SQLite's default limit of a row, less the key and a header.
  ///
  /// If a library was built with a lower limit, SQLite itself refuses larger values.
  static let maximumValueSize = 1_000_000_000 - 1024

  /// The journal mode in lower case, such as `wal` or `delete`.
  var journalMode: String

  /// 0 is OFF, 1 is NORMAL, 2 is FULL and 3 is EXTRA.
  var synchronous: Int

  /// Whether a sync also flushes the write cache of the disk, which only Apple's systems tell apart.
  var flushesDisk: Bool

  /// Whether the database has no file.
  var isInMemory: Bool

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
    return synchronous >= sufficient && flushesDisk ? .synced : .buffered
  }

  /// Whether commits can be made durable later.
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
  ///   - path: The path of the database.
  ///   - operation: The operation in errors.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``: `unsupported`; `ioFailed`.
  func synchronize(_ path: String, during operation: StoreOperation, store: String) throws {
    guard canSynchronize else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the database has the journal mode \(journalMode) and synchronous = \(synchronous), so its commits "
          + "cannot be made durable")
    }
    let fileSystem = POSIXFileSystem()
    // SQLite syncs the database file itself. A commit ends in the log, or with the end or the removal of the journal.
    let latest = ["wal": path + "-wal", "truncate": path + "-journal", "persist": path + "-journal"][journalMode]
    do {
      if let latest, try fileSystem.attributes(at: latest) != nil { try fileSystem.synchronizeFile(at: latest) }
      try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
    } catch {
      throw StoreError(
        error, during: operation, store: store, message: "the changes could not be made durable", outcome: .unknown)
    }
  }
}

extension GRDBSettings {
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
    isInMemory = try connection.rows("SELECT file FROM pragma_database_list WHERE name = 'main'") == [[""]]
  }
}

extension StoreError {
  /// Returns the error that a store throws for an error of GRDB.
  ///
  /// - Parameters:
  ///   - error: The error. Any error other than a `DatabaseError` is returned as it is; a `BodyError` and a
  ///     `CommitFailure` are unwrapped.
  ///   - operation: The operation of the store.
  ///   - store: The name of the store.
  ///   - message: A message that describes the failure, to which SQLite's own is added.
  ///   - isWrite: Whether a write failed, after its table was checked. Defaults to `false`.
  static func replacing(
    _ error: any Error, during operation: StoreOperation, store: String, _ message: String, isWrite: Bool = false
  ) -> any Error {
    if let error = error as? BodyError { return error.error }
    let commitFailure = error as? CommitFailure
    guard let error = (commitFailure?.error ?? error) as? DatabaseError else { return commitFailure?.error ?? error }
    if error.resultCode == .SQLITE_MISUSE {
      return StoreError(
        .closed, during: operation, store: store, message: "the database was closed", underlying: error)
    }
    let code = error.extendedResultCode.rawValue
    return StoreError(
      SQLiteResultCode.storeErrorCode(code, isWrite: isWrite), during: operation, store: store,
      message: "\(message): \(error.message ?? "no message") (\(code))", underlying: error,
      isRetryable: SQLiteResultCode.isTransient(code),
      // The log may hold the whole transaction although the disk reported an error.
      outcome: commitFailure != nil && error.resultCode == .SQLITE_IOERR ? .unknown : .nothingChanged)
  }
}
#endif
