#if SQLite
import CSQLite
import Larder
import LarderFiles
import LarderSQLiteFormat

/// The options for opening a database.
struct DatabaseConfiguration: Sendable {
  /// The name of the database in error messages.
  var name: String
  var path: String
  var durability: Durability.File
  var access: StoreAccess
  var createsIfMissing: Bool
  var busyTimeout: Duration
  /// The size in bytes to which the log is cut when it begins anew.
  var logSizeLimit: Int
  /// Prepares each new connection.
  var prepare: (@Sendable (borrowing SQLiteConnectionSetup) throws -> Void)?
}

/// The file of a database, and how connections to it are opened.
struct DatabaseFile: Sendable {
  /// The size of the smallest database: one page of the smallest size.
  ///
  /// Source: section 1.3.2 of [the file format](https://sqlite.org/fileformat.html).
  private static let smallestPage: Int64 = 512

  /// The path of the file, without symbolic links.
  let path: String
  let identity: FileAttributes.Identity
  let durability: Durability.File
  let access: StoreAccess

  /// The time that a call waits for the lock of another connection, which is at most some 24 days.
  let busyTimeout: Duration

  /// A Boolean value that indicates whether the index of the log is kept in memory, so no other process can open the
  /// file.
  ///
  /// On a full disk, there is no room for the file of the index, without which SQLite cannot read.
  var keepsIndexInMemory = false

  private let logSizeLimit: Int
  private let prepare: (@Sendable (borrowing SQLiteConnectionSetup) throws -> Void)?

  /// All files of the database.
  var files: StoreFileSet { DatabaseFiles.all(at: path) }

  /// The path of the log.
  ///
  /// It has the latest commits.
  var logPath: String { path + DatabaseFiles.log.suffix }

  /// The path of the index of the log, on which SQLite keeps its locks.
  var indexPath: String { path + DatabaseFiles.index.suffix }

  /// Finds the file of a database, or creates it.
  ///
  /// - Throws: ``StoreError``.
  init(_ configuration: DatabaseConfiguration) throws {
    let fileSystem = POSIXFileSystem()
    let mayCreate = configuration.createsIfMissing && configuration.access == .readWrite
    do {
      let path = try fileSystem.canonicalPath(of: configuration.path)
      if try fileSystem.attributes(at: path) == nil, mayCreate {
        try DatabaseFile.create(path, in: fileSystem, configuration)
      }
      guard let attributes = try fileSystem.attributes(at: path) else {
        throw StoreError(
          .notFound, during: .open, store: configuration.name, message: "there is no SQLite database at this path")
      }
      guard attributes.kind == .file else {
        throw StoreError(
          .unrecognizedFormat, during: .open, store: configuration.name, message: "the path must lead to a regular file"
        )
      }
      // SQLite and its other libraries create such a file and write a page with their first commit. To open it as a new
      // database would hide the loss of one that was emptied.
      guard attributes.size > 0 else {
        throw StoreError(
          .unrecognizedFormat, during: .open, store: configuration.name,
          message: "the file is empty: either another program has created the database and not written to it yet, so "
            + "that it must do so first, or the file was damaged; then move it and its files -wal, -shm and -journal away, "
            + "and restore a backup")
      }
      // SQLite takes such a file for an empty one and would replace its content.
      guard attributes.size >= DatabaseFile.smallestPage else {
        throw StoreError(
          .unrecognizedFormat, during: .open, store: configuration.name,
          message: "the file has \(attributes.size) bytes, which is less than any SQLite database")
      }
      guard attributes.linkCount == 1 || configuration.access == .immutable else {
        throw StoreError(
          .unsupported, during: .open, store: configuration.name,
          message:
            "the database file has \(attributes.linkCount) hard links; only files with one are supported, because "
            + "each path would use its own log")
      }
      if configuration.access == .immutable {
        try DatabaseFile.checkComplete(path, in: fileSystem, store: configuration.name)
      }
      self.path = path
      identity = attributes.identity
    } catch let error as FileError {
      throw StoreError(
        error, during: .open, store: configuration.name, message: "the database cannot be found or created")
    }
    durability = configuration.durability
    access = configuration.access
    // SQLite has room for some 24 days.
    busyTimeout = min(max(.zero, configuration.busyTimeout), .milliseconds(Int32.max))
    logSizeLimit = max(0, configuration.logSizeLimit)
    prepare = configuration.prepare
  }

  /// Throws an error if the database file alone is not the state of the database.
  ///
  /// - Throws: ``StoreError`` with `unsupported`; `FileError`.
  private static func checkComplete(_ path: String, in fileSystem: POSIXFileSystem, store: String) throws {
    func error(_ problem: String) -> StoreError {
      StoreError(
        .unsupported, during: .open, store: store,
        message: "\(problem); open the database once with the access readWrite, which completes the database file")
    }
    let log = path + DatabaseFiles.log.suffix
    if let attributes = try fileSystem.attributes(at: log), attributes.size > 0 {
      throw error("\(log) has changes that are not in the database file yet")
    }
    let journal = path + DatabaseFiles.journal.suffix
    guard let attributes = try fileSystem.attributes(at: journal), attributes.size > 0 else { return }
    // The journal of a complete transaction is removed, emptied, or begins with zeros, depending on its mode.
    let file = try fileSystem.open(journal, .read)
    guard try file.readAll(from: 0, upTo: 1) != [0] else { return }
    throw error("\(journal) undoes an interrupted transaction, which is partly in the database file")
  }

  /// Creates an empty database.
  ///
  /// It appears at its path once it is complete, so a file of 0 bytes is never one of Larder's.
  ///
  /// - Throws: ``StoreError``, with `corrupted` if the log or the journal of another database is at the path;
  ///   `FileError`; the error of the closure that prepares connections.
  private static func create(
    _ path: String, in fileSystem: POSIXFileSystem, _ configuration: DatabaseConfiguration
  ) throws {
    let store = configuration.name
    let files = DatabaseFiles.all(at: path)
    if let (companion, companionPath) = try files.firstContent(in: fileSystem) {
      // Another process may have created the database in the meantime.
      guard try fileSystem.attributes(at: path) == nil else { return }
      throw StoreError(
        .corrupted, during: .open, store: store,
        message: "the database file is missing, but \(companionPath), \(companion.summary), exists, and a new "
          + "database would take it up; put the database file back, or move this file away too")
    }
    do {
      let copy = try StoreCopy(files, during: .open, store: store, in: fileSystem)
      // SQLite itself would let everyone read it. Nothing has the new file open, so closing it releases no locks.
      try copy.write { try initialize($0, configuration) }
    } catch let error as StoreError where error.code == .invalidArgument {
      // Another process may have created the database in the meantime, and have it open.
      guard try fileSystem.attributes(at: path) != nil else { throw error }
      try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
    }
  }

  private static func initialize(_ path: String, _ configuration: DatabaseConfiguration) throws {
    do {
      let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE)
      try configuration.prepare?(SQLiteConnectionSetup(connection))
      // The mode of the log is recorded in the first page, which is written here.
      try beginLog(on: connection, store: configuration.name)
    } catch let error as SQLiteError {
      throw StoreError(
        error, during: .open, store: configuration.name, message: "the database cannot be created", isWrite: true)
    }
  }

  // MARK: Connections

  /// Opens a connection to the file.
  ///
  /// It leaves the file as it is; ``beginLog(on:store:)`` must be called before anything is written.
  ///
  /// - Parameters:
  ///   - writes: A Boolean value that indicates whether it is the writer's connection.
  ///   - waits: A Boolean value that indicates whether its statements wait for the locks of others. Otherwise, they
  ///     fail with `SQLITE_BUSY`.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``, with `conflict` if another file is at the path; `SQLiteError`; the error of the closure that
  ///   prepares connections.
  func connect(writes: Bool, waits: Bool, store: String) throws -> SQLiteConnection {
    let connection =
      switch access {
      // Readers too: the first connection after a crash repairs the index of the log, and only one that may write
      // removes the log when it is closed. If the file cannot be written, SQLite opens it for reading.
      case .readWrite, .readOnly:
        try SQLiteConnection(
          path: path, flags: SQLITE_OPEN_READWRITE, fileSystem: keepsIndexInMemory ? "unix-excl" : nil)
      case .immutable:
        try SQLiteConnection(path: immutableURI, flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
      }
    if waits { connection.setBusyTimeout(milliseconds: Int32(clamping: Int64(busyTimeout / .milliseconds(1)))) }
    var hasMoved: Int32 = 0
    let code = sqlite3_file_control(connection.pointer, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
    let now: FileAttributes.Identity?
    do {
      now = try POSIXFileSystem().identity(at: path)
    } catch {
      throw StoreError(error, during: .open, store: store, message: "the path cannot be examined")
    }
    guard now == identity, code == SQLITE_OK, hasMoved == 0 else {
      throw StoreError(
        .conflict, during: .open, store: store,
        message: "the database file was moved, removed or replaced; close all stores of the database and open it again",
        isRetryable: true)
    }
    // First, because a key must be set before anything is read, and so that the settings below are kept.
    try prepare?(SQLiteConnectionSetup(connection))
    // Damage must not lead outside a page.
    try connection.run("PRAGMA cell_size_check = ON")
    guard writes, access == .readWrite else {
      try connection.run("PRAGMA query_only = ON")
      return connection
    }
    try connection.run("PRAGMA synchronous = \(durability == .synced ? "FULL" : "NORMAL")")
    try connection.run("PRAGMA foreign_keys = ON")
    try connection.run("PRAGMA journal_size_limit = \(logSizeLimit)")
    #if canImport(Darwin)
    try connection.run("PRAGMA fullfsync = ON")
    try connection.run("PRAGMA checkpoint_fullfsync = ON")
    #endif
    return connection
  }

  /// Returns whether the database is in the mode of the write-ahead log.
  ///
  /// - Throws: `SQLiteError`.
  func hasLog(on connection: SQLiteConnection) throws -> Bool {
    try connection.rows("PRAGMA journal_mode") == [["wal"]]
  }

  /// Sets the database to the mode of the write-ahead log.
  ///
  /// - Throws: ``StoreError`` with `unsupported`; `SQLiteError`.
  static func beginLog(on connection: SQLiteConnection, store: String) throws {
    guard try connection.rows("PRAGMA journal_mode = WAL") == [["wal"]] else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "SQLite cannot keep a write-ahead log for this file; use a local file system")
    }
  }

  /// The URI of a file that nothing writes to; see [SQLite's list](https://sqlite.org/uri.html).
  private var immutableURI: String {
    let escaped = path.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return "file:\(escaped.joined())?immutable=1"
  }
}
#endif
