#if SQLite
import CSQLite
import Larder
import LarderFiles
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The options for opening a database.
struct DatabaseConfiguration: Sendable {
  /// The name of the database in error messages.
  var name: String
  var path: String
  var durability: FileDurability
  var access: StoreAccess
  var createsIfMissing: Bool
  var busyTimeout: Duration
}

/// An open database: the single object of this process for a file, shared by all its users.
final class SharedDatabase: Sendable {
  /// The oldest version of SQLite that has strict tables, as `sqlite3_libversion_number` gives it.
  private static let oldestLibrary: Int32 = 3_037_000

  /// The bytes of a row beside its value: the key and a header.
  private static let rowOverhead = 1024

  /// The path of the file, without symbolic links.
  let path: String
  let identity: FileAttributes.Identity
  let durability: FileDurability
  let access: StoreAccess

  /// The maximum size of an encoded value, in bytes.
  let maximumValueSize: Int

  let readers = ReaderPool()
  let writer = DatabaseWriter()
  let observers = DatabaseObservers()

  private let busyMilliseconds: Int32

  /// The types with which the stores of this process have the tables open, by the identifiers of the tables.
  private let claims = Mutex<[String: TypeClaim]>([:])

  /// A new executor for blocking work other than writes.
  ///
  /// Each call gets its own, because no call may wait for another's backup.
  var maintenanceQueue: DispatchQueueExecutor { DispatchQueueExecutor(label: "Larder.SQLiteDatabase.maintenance") }

  /// The path of the log, which has the latest commits.
  var logPath: String { path + "-wal" }

  /// Opens a file.
  ///
  /// - Throws: ``StoreError``.
  init(_ configuration: DatabaseConfiguration, path: String, identity: FileAttributes.Identity) throws {
    self.path = path
    self.identity = identity
    durability = configuration.durability
    access = configuration.access
    // SQLite has room for some 24 days.
    let busyTimeout = min(max(.zero, configuration.busyTimeout), .milliseconds(Int32.max))
    busyMilliseconds = Int32(clamping: Int64(busyTimeout / .milliseconds(1)))
    guard sqlite3_threadsafe() != 0, sqlite3_libversion_number() >= SharedDatabase.oldestLibrary else {
      throw StoreError(
        .unsupported, during: .open, store: configuration.name,
        message: "the SQLite library has the version \(String(cString: sqlite3_libversion())) or is built without "
          + "threads; version 3.37 or later with threads is needed")
    }
    do {
      let connection = try SharedDatabase.connect(
        path, identity, access, durability, busyMilliseconds, writes: access == .readWrite, store: configuration.name)
      maximumValueSize =
        Int(sqlite3_limit(connection.pointer, SQLITE_LIMIT_LENGTH, -1)) - SharedDatabase.rowOverhead
      // Reads the file, so that one of another format is refused here.
      _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
      readers.giveBack(connection)
    } catch let error as SQLiteError {
      throw StoreError(
        error, during: .open, store: configuration.name, message: SharedDatabase.message(for: error, access: access))
    }
    // The first connection was opened to write, so that the file is in the mode of the log.
    readers.close()
  }

  private static func message(for error: SQLiteError, access: StoreAccess) -> String {
    guard access == .readOnly, [SQLITE_CANTOPEN, SQLITE_READONLY].contains(error.primaryCode) else {
      return "the database cannot be opened"
    }
    return
      "the database cannot be opened, because SQLite needs the files of its log also for reading; open it with the "
      + "access immutable if nothing writes to it"
  }

  /// Opens a connection to the file.
  ///
  /// - Parameters:
  ///   - writes: Whether it is the writer's connection.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``, with `conflict` if another file is at the path; `SQLiteError`.
  func connect(writes: Bool, store: String) throws -> SQLiteConnection {
    try SharedDatabase.connect(path, identity, access, durability, busyMilliseconds, writes: writes, store: store)
  }

  private static func connect(
    _ path: String, _ identity: FileAttributes.Identity, _ access: StoreAccess, _ durability: FileDurability,
    _ busyMilliseconds: Int32, writes: Bool, store: String
  ) throws -> SQLiteConnection {
    let connection =
      switch access {
      // Readers too: the first connection after a crash repairs the index of the log, and only one that may write
      // removes the log when it is closed. If the file cannot be written, SQLite opens it for reading.
      case .readWrite, .readOnly:
        try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: busyMilliseconds)
      case .immutable:
        try SQLiteConnection(
          path: uri(ofImmutable: path), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, busyTimeout: busyMilliseconds)
      }
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
    // Damage must not lead outside a page.
    try connection.run("PRAGMA cell_size_check = ON")
    guard writes, access == .readWrite else {
      try connection.run("PRAGMA query_only = ON")
      return connection
    }
    guard try connection.rows("PRAGMA journal_mode = WAL") == [["wal"]] else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "SQLite cannot keep a write-ahead log for this file; use a local file system")
    }
    try connection.run("PRAGMA synchronous = \(durability == .synced ? "FULL" : "NORMAL")")
    #if canImport(Darwin)
    try connection.run("PRAGMA fullfsync = ON")
    try connection.run("PRAGMA checkpoint_fullfsync = ON")
    #endif
    return connection
  }

  /// Returns the URI of a file that nothing writes to; see [SQLite's list](https://sqlite.org/uri.html).
  private static func uri(ofImmutable path: String) -> String {
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

  /// Closes all connections, after the last user has ended its operations.
  func close() async {
    readers.close()
    await writer.close()
  }

  // MARK: Types

  /// Notes that a store has a table open with values of a type.
  ///
  /// - Returns: Another type with which a store has it open; nothing is noted then. Otherwise `nil`.
  func claim(_ table: String, for type: Any.Type) -> Any.Type? {
    claims.withLock { $0[table, default: TypeClaim()].claim(for: type) }
  }

  /// Notes that a store that has claimed a table was closed.
  func releaseClaim(on table: String) {
    claims.withLock { claims in
      claims[table]?.release()
      if claims[table]?.isFree == true { claims[table] = nil }
    }
  }
}

/// The databases that this process has open, by the identity of the file.
enum DatabaseTable {
  /// The queue on which databases are opened, because opening blocks.
  private static let queue = DispatchQueueExecutor(label: "Larder.SQLiteDatabase.opening")

  /// The size of the smallest database: one page of the smallest size.
  ///
  /// Source: section 1.3.2 of [the file format](https://sqlite.org/fileformat.html).
  private static let smallestPage: Int64 = 512

  private struct Entry {
    let database: SharedDatabase
    var handleCount: Int
  }

  private static let entries = Mutex<[FileAttributes.Identity: Entry]>([:])

  /// Returns an open database, or opens it.
  ///
  /// - Returns: The database with its handle count incremented; balance it with `release(_:)`.
  /// - Throws: ``StoreError``.
  static func take(_ configuration: DatabaseConfiguration) async throws -> SharedDatabase {
    try await queue.run { try takeBlocking(configuration) }
  }

  private static func takeBlocking(_ configuration: DatabaseConfiguration) throws -> SharedDatabase {
    // Only this queue adds entries, so none is added between the two uses of the lock.
    let (path, identity) = try findFile(configuration)
    let open = entries.withLock { $0[identity]?.database }
    if let open { try check(open, suits: configuration) }
    let shared = entries.withLock { entries -> SharedDatabase? in
      entries[identity]?.handleCount += 1
      return entries[identity]?.database
    }
    if let shared { return shared }
    let database = try SharedDatabase(configuration, path: path, identity: identity)
    entries.withLock { $0[identity] = Entry(database: database, handleCount: 1) }
    return database
  }

  private static func check(_ database: SharedDatabase, suits configuration: DatabaseConfiguration) throws {
    guard database.access == configuration.access else {
      throw StoreError(
        .locked, during: .open, store: configuration.name,
        message: "this process has the database open with a different access, \(database.access)")
    }
    guard database.durability == configuration.durability || configuration.access != .readWrite else {
      throw StoreError(
        .locked, during: .open, store: configuration.name,
        message: "this process has the database open with a different durability, \(database.durability)")
    }
  }

  /// Decrements the handle count.
  ///
  /// - Returns: Whether it was the last handle, so that the caller must close the database. If another user opens the file
  ///   in the meantime, both are open for a moment. SQLite keeps the locks of both apart.
  static func release(_ database: SharedDatabase) -> Bool {
    entries.withLock { entries in
      guard var entry = entries[database.identity], entry.database === database else { return false }
      entry.handleCount -= 1
      entries[database.identity] = entry.handleCount > 0 ? entry : nil
      return entry.handleCount == 0
    }
  }

  // MARK: The file

  /// Finds the file of a database, or creates it.
  ///
  /// - Returns: The path without symbolic links, and the identity of the file.
  /// - Throws: ``StoreError``.
  private static func findFile(
    _ configuration: DatabaseConfiguration
  ) throws -> (path: String, identity: FileAttributes.Identity) {
    let fileSystem = POSIXFileSystem()
    let mayCreate = configuration.createsIfMissing && configuration.access == .readWrite
    do {
      let path = try fileSystem.canonicalPath(of: configuration.path)
      if try fileSystem.attributes(at: path) == nil, mayCreate {
        try create(path, in: fileSystem, store: configuration.name)
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
      guard attributes.size > 0 else {
        throw StoreError(
          .corrupted, during: .open, store: configuration.name,
          message:
            "the file is empty, which no database is that was created completely; restore a backup, or remove the "
            + "file to create a new database")
      }
      // SQLite takes such a file for an empty one and would replace its content.
      guard attributes.size >= smallestPage else {
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
      if configuration.access == .immutable, let log = try fileSystem.attributes(at: path + "-wal"), log.size > 0 {
        throw StoreError(
          .unsupported, during: .open, store: configuration.name,
          message: "the file \(configuration.name)-wal has changes that are not in the database file yet; open the "
            + "database once with the access readWrite, which moves them there")
      }
      return (path, attributes.identity)
    } catch let error as FileError {
      throw StoreError(
        error, during: .open, store: configuration.name, message: "the database cannot be found or created")
    }
  }

  /// Creates an empty database.
  ///
  /// It appears at its path once it is complete, so that an empty file is one that was damaged.
  ///
  /// - Throws: ``StoreError``; `FileError`.
  private static func create(_ path: String, in fileSystem: POSIXFileSystem, store: String) throws {
    let temporary = "\(path).larder-\(UUID().uuidString)"
    do {
      // SQLite itself would let everyone read it. Nothing has the new file open, so closing it releases no locks.
      try fileSystem.open(temporary, .createNew).close()
      try initialize(temporary, store: store)
      try fileSystem.renameExclusively(temporary, to: path, isFolder: false)
    } catch {
      // The original error matters more than a failure to remove an empty database.
      try? fileSystem.removeFile(at: temporary)
      // Another process may have created the database in the meantime.
      guard (error as? FileError)?.isExisting == true else { throw error }
    }
    try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
  }

  private static func initialize(_ path: String, store: String) throws {
    do {
      let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: 0)
      // The mode of the log is recorded in the first page, which is written here.
      _ = try connection.rows("PRAGMA journal_mode = WAL")
    } catch let error as SQLiteError {
      throw StoreError(error, during: .open, store: store, message: "the database cannot be created", isWrite: true)
    }
  }
}
#endif
