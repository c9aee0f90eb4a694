#if SQLite
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
/// Readers never wait for writers, and writers never wait for readers. Only one writer runs at a time. The options of the
/// first opener in the process, such as its timeout, apply to all.
public final class SQLiteDatabase: Sendable {
  let handle: DatabaseHandle

  /// The name of the database in error messages: the last component of its path.
  public var name: String { handle.name }

  /// Opens a database.
  ///
  /// ```swift
  /// let database = try await SQLiteDatabase(path: "shop.sqlite", busyTimeout: .seconds(10)) { connection in
  ///   try connection.run("PRAGMA cache_size = -8000")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the file. The folder must exist. An existing file is set to the mode of the write-ahead log
  ///     before the first write, and left as it is until then. `:memory:` is a file of this name; for a store in memory, use
  ///     `MemoryStore`.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`
  ///     (`synchronous = FULL`), for which the program must be allowed to open the folder, because it is synced. With
  ///     `Durability.File.buffered` (`NORMAL`), power loss may discard the latest transactions but never corrupts the file.
  ///   - access: The access of the stores to their data. Defaults to `StoreAccess.readWrite`.
  ///     With `StoreAccess.readOnly`, nothing is created or changed except `-wal` and `-shm`, which SQLite needs, and
  ///     what a killed process left in `-wal` is moved into the file. With `StoreAccess.immutable`, no lock is taken,
  ///     and you must ensure that nothing writes to the file.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the file if it is missing. Defaults to
  ///     `true`.
  ///   - busyTimeout: The time that a call waits while another process has the lock that it needs, counted from the call,
  ///     also if other calls wait before it. The time to encode the values of a batch does not count. Defaults to 5 seconds.
  ///     A call that is cancelled stops waiting.
  ///   - logSizeLimit: The size, in bytes, to which the write-ahead log is cut after a large transaction, once its content
  ///     was moved into the file. Defaults to 16 MiB.
  ///   - prepare: A closure that prepares each new connection: it registers the functions and collations that triggers,
  ///     indexes and columns of the application need, or sets pragmas such as `cache_size`. Defaults to no closure. Connections
  ///     are opened at any time and on any thread. The database sets its own pragmas afterward, such as `synchronous` and
  ///     `foreign_keys`.
  /// - Throws: `StoreError`: `notFound`; `locked` if this process has the database open with a different durability or
  ///   access; `unrecognizedFormat` if the file is no SQLite database, or has 0 bytes; `corrupted`; `unsupported` if the
  ///   file has several hard links, or if the SQLite library is older than 3.37; `conflict` if the file was replaced while
  ///   it was being opened; `timedOut`; `notPermitted`; `full`; `ioFailed`. `CancellationError` if the task is cancelled while it waits.
  ///   The error that `prepare` throws.
  public init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true,
    busyTimeout: Duration = .seconds(5), logSizeLimit: Int = 16 << 20,
    prepare: (@Sendable (borrowing SQLiteConnectionSetup) throws -> Void)? = nil
  ) async throws {
    handle = try await DatabaseHandle.take(
      DatabaseConfiguration(
        name: FilePaths.split(path).name, path: path, durability: durability, access: access,
        createsIfMissing: createsIfMissing, busyTimeout: busyTimeout, logSizeLimit: logSizeLimit, prepare: prepare))
  }

  // MARK: Transactions

  /// Reads several stores from one consistent snapshot.
  ///
  /// The closure runs synchronously on the calling thread. While it runs, the log cannot shrink, so keep it short.
  ///
  /// ```swift
  /// let (customer, order) = try database.read { transaction in
  ///   (try transaction.value(forKey: "7", in: customers), try transaction.value(forKey: "7/1", in: orders))
  /// }
  /// ```
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
  /// ```swift
  /// try await database.write { transaction in
  ///   try transaction.removeValue(forKey: "7", in: customers)
  ///   try transaction.removeAll(in: .prefix("7/"), of: orders)
  /// }
  /// ```
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
    return try await handle.running(.write) {
      try await handle.database.writer.write(
        for: handle, during: .write, until: handle.deadline, isRepeatable: false
      ) { writing in
        var transaction = SQLiteTransaction(writing: writing, handle: handle)
        let decision = UpdateDecision(catching: { .commit(try body(&transaction)) })
        if decision.isCommit { writing = try transaction.end() }
        return decision
      }.get()
    }
  }

  // MARK: Maintenance

  /// Returns the names of the stores in the database in ascending order, including tables of the same form that other
  /// programs have created.
  ///
  /// ```swift
  /// for name in try await database.storeNames() {
  ///   print(name, try await database.codecName(ofStore: name) ?? "no codec")
  /// }
  /// ```
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`.
  public func storeNames() async throws -> [String] {
    try await handle.running(.storeNames) {
      try await handle.database.writer.storeNames(for: handle, until: handle.deadline)
    }
  }

  /// Returns the name of the codec that is recorded for a store.
  ///
  /// - Parameter name: The name of the store.
  /// - Returns: The name, or `nil` if there is no such store or if no codec is recorded for it.
  /// - Throws: `StoreError`: `closed`; `unsupported` if the database has something else of that name; `ioFailed`.
  public func codecName(ofStore name: String) async throws -> String? {
    try await handle.running(.open) {
      try await handle.database.writer.findTable(for: handle, named: name, until: handle.deadline)?.codecName
    }
  }

  /// Removes a store with all its entries, and its record: the table, the view that shows its keys as text, and its row in
  /// the table `larder`.
  ///
  /// Objects that have the store open report the removal of all entries. Their later reads and writes throw `conflict`.
  ///
  /// - Parameter name: The name of the store.
  /// - Throws: `StoreError`: `notFound`; `unsupported` if another program has created the table, so it has no record;
  ///   `notPermitted` if the database is read-only, or if a foreign key of another table refers to an entry; `conflict`
  ///   if the files were moved, removed or replaced; `timedOut`; `closed`; `full`; `ioFailed`. `CancellationError`.
  ///   Nothing is removed if an error is thrown, except with the outcome `unknown`.
  public func removeStore(_ name: String) async throws {
    try await handle.running(.removeStore) {
      try await handle.database.writer.removeTable(for: handle, named: name, until: handle.deadline)
    }
  }

  /// Returns statistics about the database.
  ///
  /// ```swift
  /// let statistics = try await database.statistics()
  /// print(statistics.freePageCount * statistics.pageSize, "bytes can be freed by compacting")
  /// ```
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
  /// ```swift
  /// try await database.backup(to: "/backups/shop.sqlite", compacting: true)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the copy, where nothing may exist yet.
  ///   - compacting: A Boolean value that indicates whether to omit free pages. This takes longer. Defaults to
  ///     `false`.
  /// - Throws: `StoreError`: `invalidArgument` if something already exists at `path`; `closed`; `full`; `ioFailed`,
  ///   with the outcome `unknown` if the copy is complete but power loss may remove it.
  public func backup(to path: String, compacting: Bool = false) async throws {
    try await handle.backup(to: path, compacting: compacting)
  }

  /// Moves all commits from the write-ahead log into the database file, and empties the log.
  ///
  /// The database does so by itself whenever the log has 1,000 pages, but cannot empty a log that is always read or written.
  /// The call waits for readers of older snapshots and for other processes. Other calls continue.
  ///
  /// - Throws: `StoreError`: `timedOut` if a snapshot or a transaction outlasts the timeout of the database; `notPermitted` if
  ///   the database is read-only; `conflict` if the files were moved, removed or replaced; `closed`; `full`; `ioFailed`.
  ///   `CancellationError`. The entries are the same even if an error is thrown.
  public func checkpoint() async throws {
    try await handle.running(.checkpoint) {
      try await handle.database.writer.checkpoint(handle, until: handle.deadline)
    }
  }

  /// Flushes all previous writes to disk, so they survive power loss.
  ///
  /// The call ignores cancellation. With `Durability.File.synced`, it has work to do only if another process or an
  /// earlier session wrote with `Durability.File.buffered`.
  ///
  /// - Throws: `StoreError`: `closed`; `conflict` if the files were moved, removed or replaced; `timedOut` if another
  ///   connection has the file in the mode of the rollback journal, and its lock; `ioFailed`. `CancellationError` if the
  ///   task is cancelled while it waits for the lock.
  public func synchronize() async throws {
    try await handle.synchronize()
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

extension StoreOperation {
  static let checkpoint = StoreOperation(rawValue: "checkpoint")
  static let removeStore = StoreOperation(rawValue: "removeStore")
}

/// A new connection to a database, before it is used; see
/// ``SQLiteDatabase/init(path:durability:access:createsIfMissing:busyTimeout:logSizeLimit:prepare:)``.
public struct SQLiteConnectionSetup: ~Copyable {
  /// The connection, a `sqlite3 *`, for functions of the C library.
  ///
  /// Examples are `sqlite3_create_function_v2` and `sqlite3_create_collation_v2`. It must not be used after the closure has
  /// returned, and not be closed.
  public let pointer: OpaquePointer

  private let connection: SQLiteConnection

  init(_ connection: SQLiteConnection) {
    self.connection = connection
    pointer = connection.pointer
  }

  /// Runs SQL statements whose rows do not matter, such as `PRAGMA cache_size = -8000`.
  ///
  /// - Parameter sql: The statements, separated by semicolons.
  /// - Throws: ``SQLiteError``.
  public borrowing func run(_ sql: String) throws(SQLiteError) { try connection.run(sql) }
}

/// The size of an SQLite database.
public struct SQLiteStatistics: Sendable, Hashable {
  /// The size of a page, SQLite's unit of storage, in bytes.
  public let pageSize: Int
  /// The number of pages of the database, including free pages.
  public let pageCount: Int
  /// The number of free pages.
  ///
  /// SQLite reuses them.
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
