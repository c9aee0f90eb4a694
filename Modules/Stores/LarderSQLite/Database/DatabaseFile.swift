#if SQLite
import CSQLite
import Larder
import LarderFiles

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

/// The file of a database, and how connections to it are opened.
struct DatabaseFile: Sendable {
  /// The size of the smallest database: one page of the smallest size.
  ///
  /// Source: section 1.3.2 of [the file format](https://sqlite.org/fileformat.html).
  private static let smallestPage: Int64 = 512

  /// The path of the file, without symbolic links.
  let path: String
  let identity: FileAttributes.Identity
  let durability: FileDurability
  let access: StoreAccess

  private let busyMilliseconds: Int32

  /// The path of the log, which has the latest commits.
  var logPath: String { path + "-wal" }

  /// The path of the index of the log, on which SQLite keeps its locks.
  var indexPath: String { path + "-shm" }

  /// Finds the file of a database, or creates it.
  ///
  /// - Throws: ``StoreError``.
  init(_ configuration: DatabaseConfiguration) throws {
    let fileSystem = POSIXFileSystem()
    let mayCreate = configuration.createsIfMissing && configuration.access == .readWrite
    do {
      let path = try fileSystem.canonicalPath(of: configuration.path)
      if try fileSystem.attributes(at: path) == nil, mayCreate {
        try DatabaseFile.create(path, in: fileSystem, store: configuration.name)
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
      if configuration.access == .immutable, let log = try fileSystem.attributes(at: path + "-wal"), log.size > 0 {
        throw StoreError(
          .unsupported, during: .open, store: configuration.name,
          message: "the file \(configuration.name)-wal has changes that are not in the database file yet; open the "
            + "database once with the access readWrite, which moves them there")
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
    let busyTimeout = min(max(.zero, configuration.busyTimeout), .milliseconds(Int32.max))
    busyMilliseconds = Int32(clamping: Int64(busyTimeout / .milliseconds(1)))
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

  // MARK: Connections

  /// Opens a connection to the file.
  ///
  /// - Parameters:
  ///   - writes: Whether it is the writer's connection.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``, with `conflict` if another file is at the path; `SQLiteError`.
  func connect(writes: Bool, store: String) throws -> SQLiteConnection {
    let connection =
      switch access {
      // Readers too: the first connection after a crash repairs the index of the log, and only one that may write
      // removes the log when it is closed. If the file cannot be written, SQLite opens it for reading.
      case .readWrite, .readOnly:
        try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: busyMilliseconds)
      case .immutable:
        try SQLiteConnection(
          path: immutableURI, flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, busyTimeout: busyMilliseconds)
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
