#if SQLite
import CSQLite
public import Larder
import LarderFiles

/// An SQLite database: a file that holds named stores of different value types, with transactions across them.
///
/// ```swift
/// let database = try await SQLiteDatabase(path: "shop.sqlite")
/// let customers = try await SQLiteStore<Customer>(in: database, name: "customers")
/// let orders = try await SQLiteStore<Order>(in: database, name: "orders")
///
/// try await database.write { transaction in
///   try transaction.setValue(customer, forKey: "7", in: customers)
///   try transaction.setValue(order, forKey: "7/1", in: orders)
/// }
/// ```
///
/// If you need a single store, you don't have to create a database: see
/// ``SQLiteStore/init(path:name:codec:layout:durability:access:createsIfMissing:busyTimeout:)``.
///
/// ## Files
///
/// The database is a file of [SQLite's format](https://sqlite.org/fileformat.html), in the mode of the write-ahead log:
/// while it is open, `-wal` and `-shm` stand beside it, and the latest commits may be in `-wal` alone. A new file has the
/// permissions 0600. The file may have any other tables; the stores use only their own.
///
/// ## Sharing
///
/// Any number of processes on one machine may open the file, also with other programs and libraries, except on a network
/// file system. Within a process, all users of a file share one database, even if they opened it under different paths.
/// Readers never wait for writers, and writers never wait for readers. Only one writer runs at a time.
public final class SQLiteDatabase: Sendable {
  let handle: DatabaseHandle

  /// The name of the database in error messages: the last component of its path.
  public var name: String { handle.name }

  /// Opens a database.
  ///
  /// - Parameters:
  ///   - path: The path of the file. The folder must exist. An existing file is set to the mode of the write-ahead log.
  ///   - durability: The durability of a write when it returns. Defaults to `FileDurability.synced`
  ///     (`synchronous = FULL`). With `FileDurability.buffered` (`NORMAL`), power loss may discard the latest
  ///     transactions but never corrupts the file.
  ///   - access: Whether stores can be written. Defaults to `StoreAccess.readWrite`. With `StoreAccess.readOnly`,
  ///     nothing is created or changed except `-wal` and `-shm`, which SQLite needs, and what a killed process left in
  ///     `-wal` is moved into the file. With `StoreAccess.immutable`, no lock is taken, and you must ensure that nothing
  ///     writes to the file.
  ///   - createsIfMissing: Whether to create the file if it is missing. Defaults to `true`.
  ///   - busyTimeout: The time that a write waits while another process writes. Defaults to 5 seconds. If the process has
  ///     the database open already, the timeout of the first opener applies.
  /// - Throws: `StoreError`: `notFound`; `locked` if this process has the database open with a different durability or
  ///   access; `unrecognizedFormat` if the file is no SQLite database; `corrupted`; `unsupported` if the file has several
  ///   hard links, or if the SQLite library is older than 3.37; `conflict` if the file was replaced while it was being
  ///   opened; `timedOut`; `notPermitted`; `full`; `ioFailed`.
  public init(
    path: String, durability: FileDurability = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true,
    busyTimeout: Duration = .seconds(5)
  ) async throws {
    handle = try await DatabaseHandle.take(
      DatabaseConfiguration(
        name: FilePaths.split(path).name, path: path, durability: durability, access: access,
        createsIfMissing: createsIfMissing, busyTimeout: busyTimeout))
  }

  // MARK: Transactions

  /// Reads several stores from one consistent snapshot.
  ///
  /// The closure runs synchronously on the calling thread. While it runs, the log cannot shrink, so keep it short.
  ///
  /// - Parameter body: A closure that reads from the snapshot. Neither the transaction nor the bytes that it exposes
  ///   can escape the closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `closed`; `timedOut`; `ioFailed`.
  public func read<Result>(_ body: (borrowing SQLiteTransaction) throws -> Result) throws -> Result {
    try handle.read(for: .read) { connection in
      try connection.reading { try body(SQLiteTransaction(reading: connection, handle: handle)) }
    }
  }

  /// Reads and writes several stores in one atomic transaction.
  ///
  /// Other writers, in this process and in others, wait. Readers do not.
  ///
  /// - Parameter body: A closure that reads and writes. It runs on the database's own thread and may block. If it throws,
  ///   nothing is changed. It must not write except through its transaction.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws, unchanged. `StoreError`: `closed`; `notPermitted` if the database is
  ///   read-only, or if a trigger or an index in it refuses a change; `conflict` if its files were moved, removed or
  ///   replaced; `timedOut` if another process holds the lock for longer than the timeout; `full`; `ioFailed`, even if
  ///   `body` caught the error of a failed change. `CancellationError` if the task was cancelled before the transaction
  ///   began.
  public func write<Result: Sendable>(
    _ body: @escaping @Sendable (inout SQLiteTransaction) throws -> Result
  ) async throws -> Result {
    let handle = handle
    return try await handle.run(.write) {
      try await handle.database.writer.write(for: handle, during: .write) { writing in
        var transaction = SQLiteTransaction(writing: writing, handle: handle)
        let result = try BodyError.wrapping { try body(&transaction) }
        writing = try transaction.end()
        return result
      }
    }
  }

  // MARK: Maintenance

  /// Returns the names of the stores in the database in ascending order, including tables of the same form that other
  /// programs have created.
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`.
  public func storeNames() async throws -> [String] {
    try await handle.run(.storeNames) { try await handle.database.writer.storeNames(for: handle) }
  }

  /// Returns the name of the codec that is recorded for a store.
  ///
  /// - Parameter name: The name of the store.
  /// - Returns: The name, or `nil` if there is no such store or if no codec is recorded for it.
  /// - Throws: `StoreError`: `closed`; `unsupported` if the database has something else of that name; `ioFailed`.
  public func codecName(ofStore name: String) async throws -> String? {
    try await handle.run(.open) {
      try await handle.database.writer.findTable(for: handle, named: name)?.codecName
    }
  }

  /// Returns statistics about the database.
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`.
  public func statistics() async throws -> SQLiteStatistics {
    let handle = handle
    return try await handle.database.maintenanceQueue.run {
      try handle.read(for: .statistics) { try handle.database.statistics(on: $0, store: handle.name) }
    }
  }

  /// Writes a complete copy of the database, taken from one snapshot, while the database is in use.
  ///
  /// The copy appears at `path` once it is complete and durable. It holds all tables, also those of others.
  ///
  /// - Parameters:
  ///   - path: The path of the copy, where nothing may exist yet.
  ///   - compacting: Whether to omit free pages, which takes longer. Defaults to `false`.
  /// - Throws: `StoreError`: `invalidArgument` if something already exists at `path`; `closed`; `full`; `ioFailed`,
  ///   with the outcome `unknown` if the copy is complete but power loss may remove it.
  public func backup(to path: String, compacting: Bool = false) async throws {
    try await handle.backup(to: path, compacting: compacting)
  }

  /// Flushes all previous writes to disk, so that they survive power loss.
  ///
  /// The call ignores cancellation. With `FileDurability.synced`, it has work to do only if another process or an
  /// earlier session wrote with `FileDurability.buffered`.
  ///
  /// - Throws: `StoreError`: `closed`; `conflict` if the files were moved, removed or replaced; `ioFailed`.
  public func synchronize() async throws {
    try await handle.run(.synchronize) { try await handle.database.writer.synchronize(handle) }
  }

  /// Waits for running operations, then closes the database and the stores that were opened in it.
  ///
  /// Other objects that opened the same path stay open. Closing again is a no-op. The call ignores cancellation.
  ///
  /// - Throws: `StoreError`: `conflict` if the files were moved, removed or replaced; `ioFailed` if previous writes
  ///   could not be made durable. The database is closed even if an error is thrown.
  public func close() async throws {
    try await handle.close()
  }
}

extension SQLiteDatabase: CustomStringConvertible {
  /// The type and the name of the database.
  public var description: String { "SQLiteDatabase(\(name))" }
}

/// The size of an SQLite database.
public struct SQLiteStatistics: Sendable, Hashable {
  /// The size of a page, SQLite's unit of storage, in bytes.
  public let pageSize: Int
  /// The number of pages of the database, including free pages.
  public let pageCount: Int
  /// The number of free pages, which SQLite reuses.
  public let freePageCount: Int
  /// The size of the log in bytes.
  public let logSize: Int
}

extension SharedDatabase {
  /// Returns statistics about the database.
  ///
  /// - Throws: ``StoreError``; `SQLiteError`.
  func statistics(on connection: SQLiteConnection, store: String) throws -> SQLiteStatistics {
    do {
      return SQLiteStatistics(
        pageSize: Int(try connection.integer("PRAGMA page_size")),
        pageCount: Int(try connection.integer("PRAGMA page_count")),
        freePageCount: Int(try connection.integer("PRAGMA freelist_count")),
        logSize: Int(try POSIXFileSystem().attributes(at: file.logPath)?.size ?? 0))
    } catch let error as FileError {
      throw StoreError(error, during: .statistics, store: store, message: "the log cannot be examined")
    }
  }
}
#endif
