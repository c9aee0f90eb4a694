#if SQLite
import CSQLite
import Larder
import LarderFiles

/// An open database: the single object of this process for a file, shared by all its users.
final class SharedDatabase: SharedFile {
  /// The oldest version of SQLite that has strict tables, as `sqlite3_libversion_number` gives it.
  private static let oldestLibrary: Int32 = 3_037_000

  /// The bytes of a row beside its value: the key and a header.
  private static let rowOverhead = 1024

  let file: DatabaseFile

  /// The maximum size of an encoded value, in bytes.
  let maximumValueSize: Int

  let readers = ReaderPool()
  let writer = DatabaseWriter()
  let observers = DatabaseObservers()

  /// The types with which the stores of this process have the tables open, by the identifiers of the tables.
  private let claims = Locked<[String: TypeClaim]>([:])

  var identity: FileAttributes.Identity { file.identity }
  var durability: FileDurability { file.durability }
  var access: StoreAccess { file.access }

  /// A new executor for blocking work other than writes.
  ///
  /// Each call gets its own, because no call may wait for another's backup.
  var maintenanceQueue: DispatchQueueExecutor { DispatchQueueExecutor(label: "Larder.SQLiteDatabase.maintenance") }

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``.
  init(_ file: DatabaseFile, store: String) throws {
    self.file = file
    guard sqlite3_threadsafe() != 0, sqlite3_libversion_number() >= SharedDatabase.oldestLibrary else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the SQLite library has the version \(String(cString: sqlite3_libversion())) or is built without "
          + "threads; version 3.37 or later with threads is needed")
    }
    do {
      // As the writer's, so that the file is in the mode of the log.
      let connection = try file.connect(writes: true, store: store)
      maximumValueSize =
        Int(sqlite3_limit(connection.pointer, SQLITE_LIMIT_LENGTH, -1)) - SharedDatabase.rowOverhead
      // Reads the file, so that one of another format is refused here.
      _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
      try connection.run("PRAGMA query_only = ON")
      readers.giveBack(connection)
    } catch let error as SQLiteError {
      throw StoreError(
        error, during: .open, store: store, message: SharedDatabase.message(for: error, access: file.access))
    }
  }

  private static func message(for error: SQLiteError, access: StoreAccess) -> String {
    guard access == .readOnly, [SQLITE_CANTOPEN, SQLITE_READONLY].contains(error.primaryCode) else {
      return "the database cannot be opened"
    }
    return
      "the database cannot be opened, because SQLite needs the files of its log also for reading; open it with the "
      + "access immutable if nothing writes to it"
  }

  /// Closes all connections, after the last user has ended its operations.
  func close() async {
    readers.close()
    await writer.close()
  }

  // MARK: Types

  /// Notes that a store has a table open with values of a type.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if this process has it open with another type.
  func claim(_ table: String, for type: Any.Type, store: String) throws {
    try claims.withLock { try $0[table, default: TypeClaim()].claim(for: type, store: store) }
  }

  /// Notes that a store that has claimed a table was closed.
  func releaseClaim(on table: String) {
    claims.withLock { claims in
      claims[table]?.release()
      if claims[table]?.isFree == true { claims[table] = nil }
    }
  }
}

/// The databases that this process has open.
enum DatabaseTable {
  /// The queue on which databases are opened, because opening blocks.
  private static let queue = DispatchQueueExecutor(label: "Larder.SQLiteDatabase.opening")

  private static let files = SharedFiles<SharedDatabase>()

  /// Returns an open database, or opens it.
  ///
  /// - Returns: The database, counted; balance it with `release(_:)`.
  /// - Throws: ``StoreError``.
  static func take(_ configuration: DatabaseConfiguration) async throws -> SharedDatabase {
    try await queue.run {
      let file = try DatabaseFile(configuration)
      let open = try files.take(
        file.identity, access: file.access, durability: file.durability, store: configuration.name)
      if let open { return open }
      let database = try SharedDatabase(file, store: configuration.name)
      files.insert(database)
      return database
    }
  }

  /// Gives back a database.
  ///
  /// - Returns: Whether it was the last use, so that the caller must close the database. If another user opens the file
  ///   in the meantime, both are open for a moment. SQLite keeps the locks of both apart.
  static func release(_ database: SharedDatabase) -> Bool { files.release(database) }
}
#endif
