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

  /// The check of readers, which would read an old file forever after another one has taken its place.
  private let watch: ReplacedFileWatch

  /// The types with which the stores of this process have the tables open, by the identifiers of the tables.
  private let claims = Locked<[[UInt8]: TypeClaim]>([:])

  var identity: FileAttributes.Identity { file.identity }
  var durability: Durability.File { file.durability }
  var access: StoreAccess { file.access }

  /// A new executor for blocking work other than writes.
  ///
  /// Each call gets its own, because no call may wait for another's backup.
  var maintenanceQueue: DispatchQueueExecutor { DispatchQueueExecutor(label: "Larder.SQLiteDatabase.maintenance") }

  /// Opens a file that is left as it is.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``; `LockIsTaken`; the error of the closure that prepares connections.
  init(_ file: DatabaseFile, store: String) throws {
    watch = ReplacedFileWatch(file.identity, at: file.path)
    guard sqlite3_threadsafe() != 0, sqlite3_libversion_number() >= SharedDatabase.oldestLibrary else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the SQLite library has the version \(String(cString: sqlite3_libversion())) or is built without "
          + "threads; version 3.37 or later with threads is needed")
    }
    do {
      let connection: SQLiteConnection
      (self.file, connection) = try SharedDatabase.firstConnection(to: file, store: store)
      maximumValueSize =
        Int(sqlite3_limit(connection.pointer, SQLITE_LIMIT_LENGTH, -1)) - SharedDatabase.rowOverhead
      readers.giveBack(connection)
    } catch let error as SQLiteError {
      let failure = StoreError(
        error, during: .open, store: store, message: SharedDatabase.message(for: error, access: file.access))
      throw error.isBusy ? LockIsTaken(error: failure) : failure
    }
  }

  /// Opens the first connection and reads the file, so one of another format is refused here.
  ///
  /// - Returns: The file and the connection. On a full disk, the index of the log is kept in memory.
  /// - Throws: ``StoreError``; `SQLiteError`.
  private static func firstConnection(
    to file: DatabaseFile, store: String
  ) throws -> (DatabaseFile, SQLiteConnection) {
    do {
      let connection = try file.connect(writes: false, waits: false, store: store)
      _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
      return (file, connection)
    } catch let error as SQLiteError {
      guard error.isFullIndex, !file.keepsIndexInMemory else { throw error }
      var file = file
      file.keepsIndexInMemory = true
      return try firstConnection(to: file, store: store)
    }
  }

  private static func message(for error: SQLiteError, access: StoreAccess) -> String {
    switch error.primaryCode {
    case SQLITE_BUSY:
      return "the database cannot be opened, because another program has locked it"
    case SQLITE_CANTOPEN where access == .readOnly && error.errorNumber == 0,
      SQLITE_CANTOPEN where access == .readOnly && error.isAccessDenied, SQLITE_READONLY where access == .readOnly:
      return
        "the database cannot be opened, because SQLite needs the files of its log also for reading; open it with the "
        + "access immutable if nothing writes to it"
    default:
      return "the database cannot be opened"
    }
  }

  /// Throws an error if the database is open for reading only and its file was replaced.
  ///
  /// A program that writes notices it with its next write, and can still read and save what it has.
  ///
  /// - Throws: ``StoreError``: `conflict`; `ioFailed`.
  @inline(__always)
  func checkNotReplaced(during operation: StoreOperation, store: String) throws {
    guard access == .readOnly else { return }
    do throws(FileError) {
      guard try watch.isReplaced() else { return }
    } catch {
      throw StoreError(
        error, during: operation, store: store, message: "the file of the database could not be checked")
    }
    throw StoreError(
      .conflict, during: operation, store: store,
      message: "\(file.path) was replaced while the database was open; close all stores of the database and open it "
        + "again")
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
  func claim(_ table: [UInt8], for type: Any.Type, store: String) throws {
    try claims.withLock { try $0[table, default: TypeClaim()].claim(for: type, store: store) }
  }

  /// Notes that a store that has claimed a table was closed.
  func releaseClaim(on table: [UInt8]) {
    claims.withLock { claims in
      claims[table]?.release()
      if claims[table]?.isFree == true { claims[table] = nil }
    }
  }
}

/// The error of a call that needs the lock of another connection.
///
/// The call may try again.
struct LockIsTaken: Error {
  /// The error of the call if the lock stays taken.
  let error: StoreError

  /// The longest time between two attempts.
  private static var longestPause: Duration { .milliseconds(20) }

  /// Runs a closure, again and again while another connection has the lock that it needs.
  ///
  /// - Parameters:
  ///   - deadline: The time after which the lock is not waited for.
  ///   - attempt: The closure.
  /// - Throws: The error that `attempt` throws; ``StoreError`` with `timedOut` after the deadline; `CancellationError` if
  ///   the task is cancelled while it waits.
  static func retrying<Result>(
    until deadline: ContinuousClock.Instant, _ attempt: () async throws -> Result
  ) async throws -> Result {
    var pause = Duration.milliseconds(1)
    while true {
      do {
        return try await attempt()
      } catch let taken as LockIsTaken {
        let rest = ContinuousClock.now.duration(to: deadline)
        guard rest > .zero else { throw taken.error }
        try await Task.sleep(for: min(pause, rest))
        pause = min(pause * 2, longestPause)
      }
    }
  }
}

/// The databases that this process has open.
enum DatabaseTable {
  private static let files = SharedFiles<SharedDatabase>()

  /// The tasks that open a file, of which only one does at a time.
  private static let openings = CallerQueues<FileAttributes.Identity>()

  /// A new queue for opening a file, because opening blocks.
  ///
  /// Each call gets its own, because no file waits for another.
  private static var queue: DispatchQueueExecutor { DispatchQueueExecutor(label: "Larder.SQLiteDatabase.opening") }

  /// Returns an open database, or opens it.
  ///
  /// - Returns: The database, counted; balance it with `release(_:)`.
  /// - Throws: ``StoreError``; `CancellationError`; the error of the closure that prepares connections.
  static func take(_ configuration: DatabaseConfiguration) async throws -> SharedDatabase {
    let start = ContinuousClock.now
    let file = try await queue.run { try DatabaseFile(configuration) }
    let deadline = start + file.busyTimeout
    return try await openings.withTurn(of: file.identity) {
      let open = try files.take(
        file.identity, access: file.access, durability: file.durability, store: configuration.name)
      if let open { return open }
      let database = try await LockIsTaken.retrying(until: deadline) {
        try await queue.run { try SharedDatabase(file, store: configuration.name) }
      }
      files.insert(database)
      return database
    }
  }

  /// Gives back a database.
  ///
  /// - Returns: A Boolean value that indicates whether it was the last use, so the caller must close the database. If
  ///   another user opens the file in the meantime, both are open for a moment. SQLite keeps the locks of both apart.
  static func release(_ database: SharedDatabase) -> Bool { files.release(database) }
}
#endif
