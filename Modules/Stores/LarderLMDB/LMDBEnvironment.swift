#if LMDB
import CLMDB
public import Larder
import LarderFiles

/// An LMDB environment: a set of files that holds named stores of different value types, with transactions across them.
///
/// ```swift
/// let environment = try await LMDBEnvironment(path: "shop")
/// let customers = try await LMDBStore<Customer>(in: environment, name: "customers")
/// let orders = try await LMDBStore<Order>(in: environment, name: "orders")
///
/// try await environment.write { transaction in
///   try transaction.setValue(customer, forKey: "7", in: customers)
///   try transaction.setValue(order, forKey: "7/1", in: orders)
/// }
/// ```
///
/// If you need a single store, you don't have to create an environment: see
/// ``LMDBStore/init(path:name:codec:contents:durability:access:createsIfMissing:)``.
///
/// ## Files
///
/// An environment is either a folder with `data.mdb` and `lock.mdb`, or a single data file with a lock file beside it.
/// Both use LMDB's own format, which `mdb_stat`, `mdb_dump` and every binding of the same major version of LMDB read. New files
/// have permissions 0600. LMDB keeps no page checksums; <doc:UsingLMDBStore#Limitations> explains the consequences.
///
/// ## Sharing
///
/// Any number of processes on one machine may open the files, except on a network file system. Within a process, all
/// users of a file share one environment, even if they opened it under different paths. Readers never wait for writers,
/// and writers never wait for readers. Only one writer runs at a time.
///
/// ## Memory
///
/// The files are read through a memory map that grows by itself. The map reserves up to 1 TiB of address space, or less
/// if the system grants less. Reserved address space costs nothing until it is used.
public final class LMDBEnvironment: Sendable {
  let handle: EnvironmentHandle

  /// The name of the environment in error messages: the last component of its path.
  public var name: String { handle.name }

  /// The version of the LMDB library that this process has loaded, such as "0.9.24".
  ///
  /// It need not be the one that your program was built with. LMDB 0.9 and LMDB 1.0 cannot read each other's files; see
  /// <doc:UsingLMDBStore#Versions-of-LMDB>.
  public static var libraryVersion: String {
    var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
    mdb_version(&major, &minor, &patch)
    return "\(major).\(minor).\(patch)"
  }

  /// Opens an environment.
  ///
  /// ```swift
  /// let environment = try await LMDBEnvironment(path: "shop", durability: .buffered)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of a folder or a data file. If nothing exists at the path, a folder is created. The parent
  ///     folder must exist.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`. With
  ///     `Durability.File.buffered`, power loss may discard the latest transaction but never corrupts the file
  ///     (`MDB_NOMETASYNC`).
  ///   - access: The access of the stores to their data. Defaults to `StoreAccess.readWrite`.
  ///     With `StoreAccess.readOnly`, nothing is created, and nothing is changed except a reader slot in the lock file.
  ///     The lock file must exist and must be writable unless the file system is mounted read-only. With
  ///     `StoreAccess.immutable`, no lock is taken, and you must ensure that nothing writes to the files.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the environment if it is missing. Defaults
  ///     to `true`.
  ///   - busyTimeout: The time, from 250 milliseconds, that a write or the opening of a store waits for other writers. It
  ///     counts from the call. When it has passed, or the task is cancelled, the call throws and changes nothing. Defaults to
  ///     `nil`, for no limit, in which case a cancelled write throws when its turn comes. See
  ///     <doc:UsingLMDBStore#Several-processes> for the limits of this limit.
  /// - Throws: `StoreError`: `notFound`; `locked` if this process has the environment open with a different
  ///   durability or access, or if a process with the same process id in another container has it open;
  ///   `unrecognizedFormat`, `versionMismatch`, `corrupted` or `unsupported` if LMDB cannot read the data file, which
  ///   is left unchanged; `unsupported` if the data file has several hard links; `conflict` if the files were replaced
  ///   while they were being opened; `notPermitted`; `full`; `ioFailed`.
  public convenience init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, busyTimeout: Duration? = nil
  ) async throws {
    try await self.init(
      EnvironmentConfiguration(
        path: path, durability: durability, access: access, createsIfMissing: createsIfMissing,
        busyTimeout: busyTimeout))
  }

  init(_ configuration: EnvironmentConfiguration) async throws {
    handle = EnvironmentHandle(
      of: try await EnvironmentTable.take(configuration), name: configuration.name,
      busyTimeout: configuration.busyTimeout)
  }

  // MARK: Transactions

  /// Reads several stores from one consistent snapshot.
  ///
  /// The closure runs synchronously on the calling thread. While it runs, pages that writers free cannot be reused, so
  /// keep it short.
  ///
  /// ```swift
  /// let (customer, order) = try environment.read { transaction in
  ///   (try transaction.value(forKey: "7", in: customers), try transaction.value(forKey: "7/1", in: orders))
  /// }
  /// ```
  ///
  /// - Parameter body: A closure that reads from the snapshot. Neither the transaction nor the bytes that it exposes
  ///   can escape the closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `closed`; `full` if no reader slot is free; `ioFailed`.
  public func read<Result>(_ body: (borrowing LMDBTransaction) throws -> Result) throws -> Result {
    try handle.read(for: .read) { pointer in
      try body(LMDBTransaction(pointer: pointer, handle: handle))
    }
  }

  /// Reads and writes several stores in one atomic transaction.
  ///
  /// Other writers, in this process and in others, wait. Readers do not.
  ///
  /// ```swift
  /// try await environment.write { transaction in
  ///   try transaction.removeValue(forKey: "7", in: customers)
  ///   try transaction.removeAll(in: .prefix("7/"), of: orders)
  /// }
  /// ```
  ///
  /// - Parameter body: A closure that reads and writes. It runs on the environment's own thread and may block. If the
  ///   memory map has to be enlarged, it runs again, and only its last run takes effect. If it throws, nothing is
  ///   changed. It must not write except through its transaction.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws, unchanged. `StoreError`: `closed`; `notPermitted` if the environment is
  ///   read-only; `conflict` if its files were moved, removed or replaced; `timedOut` if other writers held the lock for
  ///   longer than the environment's `busyTimeout`; `full`; `ioFailed`, even if `body` caught the error of a failed change. `CancellationError` if the task was cancelled before the transaction began.
  public func write<Result: Sendable>(
    _ body: @escaping @Sendable (inout LMDBTransaction) throws -> Result
  ) async throws -> Result {
    let handle = handle
    return try await handle.write(during: .write) { pointer, changes in
      var transaction = LMDBTransaction(pointer: pointer, handle: handle, recording: changes)
      let decision = UpdateDecision(catching: { .commit(try body(&transaction)) })
      // A failed change fails the whole transaction, even if the body caught the error. If the memory map is too small, it
      // is enlarged no matter how the body handled the error.
      if let failure = transaction.failure, decision.isCommit || failure.code == MDB_MAP_FULL { throw failure }
      changes = transaction.changes
      return decision
    }.get()
  }

  // MARK: Maintenance

  /// Returns the names of the stores in the environment in ascending order, including those created by other programs.
  ///
  /// ```swift
  /// print(try await environment.storeNames())  // ["customers", "orders"]
  /// ```
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`.
  public func storeNames() async throws -> [String] {
    try await handle.environment.writer.storeNames(for: handle)
  }

  /// Removes a store with all its entries: its named database, and its record.
  ///
  /// Another process that has the store open finds no entries any more, and its writes throw `conflict`.
  ///
  /// ```swift
  /// try await environment.removeStore("orders")
  /// ```
  ///
  /// - Parameter name: The name of the store.
  /// - Throws: `StoreError`: `notFound`; `locked` if this process has the store open; `unsupported` if another program
  ///   has created the named database, so it has no record; `notPermitted` if the environment is read-only; `conflict`
  ///   if the files were moved, removed or replaced; `timedOut` if other writers held the lock for longer than the
  ///   environment's `busyTimeout`; `closed`; `full`; `ioFailed`. `CancellationError`. Nothing is removed if an error
  ///   is thrown, except with the outcome `unknown`.
  public func removeStore(_ name: String) async throws {
    try await handle.withWriter(during: .removeStore) { [handle] in
      try await $0.removeDatabase(for: handle, named: name, turn: $1)
    }
  }

  /// Returns statistics about the environment.
  ///
  /// ```swift
  /// let statistics = try await environment.statistics()
  /// print(statistics.freePageCount * statistics.pageSize, "bytes are free for new entries")
  /// ```
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`.
  public func statistics() async throws -> LMDBStatistics {
    let handle = handle
    return try await handle.environment.maintenanceQueue.run {
      try handle.read(for: .statistics) { try handle.environment.statistics(in: $0) }
    }
  }

  /// Writes a complete copy of the environment, taken from one snapshot, while the environment is in use.
  ///
  /// The copy appears at `path` once it is complete and durable. It has a lock file, so it can be opened read-only.
  ///
  /// ```swift
  /// try await environment.backup(to: "/backups/shop", compacting: true)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the copy, where nothing may exist yet. The copy is a folder if the environment is one, else
  ///     a file.
  ///   - compacting: A Boolean value that indicates whether to omit free pages. This takes longer. Defaults to
  ///     `false`.
  /// - Throws: `StoreError`: `invalidArgument` if something already exists at `path`; `closed`; `full`; `ioFailed`,
  ///   with the outcome `unknown` if the copy is complete but power loss may remove it.
  public func backup(to path: String, compacting: Bool = false) async throws {
    try await handle.backup(to: path, compacting: compacting)
  }

  /// Flushes all previous writes to disk, so they survive power loss.
  ///
  /// The call ignores cancellation. With `Durability.File.synced`, it has work to do only if another process or an
  /// earlier session wrote with `Durability.File.buffered`.
  ///
  /// - Throws: `StoreError`: `closed`; `conflict` if the files were moved, removed or replaced; `ioFailed`.
  public func synchronize() async throws {
    try await handle.environment.writer.synchronize(handle)
  }

  /// Waits for running operations, then closes the environment and the stores that were opened in it.
  ///
  /// Other objects that opened the same path stay open. Closing again is a no-op. The call ignores cancellation.
  ///
  /// - Throws: `StoreError`: `conflict` if the files were moved, removed or replaced; `ioFailed` if previous writes
  ///   could not be made durable. The environment is closed even if an error is thrown.
  public func close() async throws {
    try await handle.close()
  }
}

extension LMDBEnvironment: CustomStringConvertible {
  /// The type and the name of the environment.
  public var description: String { "LMDBEnvironment(\(name))" }
}

/// The size of an LMDB environment.
public struct LMDBStatistics: Sendable, Hashable {
  /// The size of a page, LMDB's unit of storage, in bytes.
  public let pageSize: Int
  /// The size of the memory map in bytes.
  ///
  /// The data file can reach this size before the map grows.
  public let mapSize: Int
  /// The number of pages of the data file in use so far, including free pages.
  public let pageCount: Int
  /// The number of free pages, which LMDB reuses.
  public let freePageCount: Int
  /// The number of the latest transaction that changed something.
  public let lastTransaction: Int
  /// The highest number of reader slots in use at the same time, including those of pooled read transactions.
  public let readerCount: Int
  /// The number of slots in the reader table, which all processes share.
  public let maximumReaderCount: Int
}

extension SharedEnvironment {
  /// The identifier of the database of free pages.
  ///
  /// Its keys are transaction numbers; each value holds a page count and the page numbers. Source: `FREE_DBI` in
  /// `mdb.c` of LMDB 0.9.
  private static let freePages: MDB_dbi = 0

  /// Returns statistics about the environment, measured in a read transaction.
  func statistics(in transaction: OpaquePointer) throws -> LMDBStatistics {
    var statistics = MDB_stat()
    try LMDBError.check(mdb_env_stat(pointer, &statistics))
    var information = MDB_envinfo()
    try LMDBError.check(mdb_env_info(pointer, &information))
    var freePageCount = 0
    let free = RawDatabase(transaction: transaction, identifier: SharedEnvironment.freePages)
    var scan = try free.scan(.all)
    while let (_, value) = try scan.next() {
      if value.count >= MemoryLayout<Int>.size { freePageCount += value.loadUnaligned(as: Int.self) }
    }
    return LMDBStatistics(
      pageSize: Int(statistics.ms_psize), mapSize: information.me_mapsize, pageCount: information.me_last_pgno + 1,
      freePageCount: freePageCount, lastTransaction: information.me_last_txnid,
      readerCount: Int(information.me_numreaders), maximumReaderCount: Int(information.me_maxreaders))
  }
}

extension StoreOperation {
  static let removeStore = StoreOperation(rawValue: "removeStore")
}
#endif
