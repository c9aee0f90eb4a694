#if LMDB
internal import CLMDB
public import Larder
internal import LarderFiles

/// An LMDB environment: files that hold named stores of different value types, with transactions across them.
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
/// A store alone needs no environment of its own making: see ``LMDBStore/init(path:name:codec:durability:access:createsIfMissing:)``.
///
/// ## Files
///
/// An environment is a folder with `data.mdb` and `lock.mdb`, or a single data file with a lock file beside it; both are
/// LMDB's own format (version 0.9), which `mdb_stat`, `mdb_dump` and every binding of LMDB read. New files have permissions
/// 0600. LMDB keeps no checksums of pages: `Docs/LMDBStore.md` says what that means.
///
/// ## Sharing
///
/// Any number of processes may have the files open, on one machine and not on a network file system. Within a process
/// all that open the same file share one environment, whatever path they came by. Readers never wait for writers, nor
/// writers for readers; writers take turns.
///
/// ## Memory
///
/// The files are read through a memory map. It takes up to 1 TiB of address space, which costs nothing until it is used,
/// less where the system gives less; and it grows by itself.
public final class LMDBEnvironment: Sendable {
  let lease: EnvironmentLease

  /// What the environment is called in errors: the last component of its path.
  public var name: String { lease.name }

  /// Opens an environment.
  ///
  /// - Parameters:
  ///   - path: A folder or a data file. Where nothing is there a folder is made; the folder above it must exist.
  ///   - durability: What happens before a write returns; ``Durability/synced`` unless said. With ``Durability/buffered``
  ///     power loss may take the latest transaction, and never corrupts the file (`MDB_NOMETASYNC`).
  ///   - access: Whether stores may be written; defaults to ``StoreAccess/readWrite``. With ``StoreAccess/readOnly`` nothing
  ///     is created or changed but the slot of a reader in the lock file, which must exist and be writable unless the file
  ///     system is mounted read-only. ``StoreAccess/immutable`` takes no lock: you promise that no one writes.
  ///   - createsIfMissing: Whether a missing environment is created; `true` unless said.
  /// - Throws: ``StoreError``: `notFound`; `locked` if this process has it open with another durability or access, or if a
  ///   process of the same number in another container has it open; `unrecognizedFormat`, `versionMismatch`, `corrupted`
  ///   or `unsupported` if the data file is none that LMDB can read, which is left as it is; `unsupported` if it has
  ///   several hard links; `conflict` if the files were replaced while they were opened; `notPermitted`; `full`;
  ///   `ioFailed`.
  public convenience init(
    path: String, durability: Durability = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing,
      initialMapSize: EnvironmentConfiguration.defaultMapSize)
  }

  /// Opens an environment with a memory map of another size, in bytes.
  package init(
    path: String, durability: Durability = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true,
    initialMapSize: Int
  ) async throws {
    lease = try await EnvironmentLease.take(
      EnvironmentConfiguration(
        name: FilePaths.split(path).name, path: path, durability: durability, access: access,
        createsIfMissing: createsIfMissing, initialMapSize: initialMapSize))
  }

  // MARK: Transactions

  /// Reads several stores as they are at one moment.
  ///
  /// It runs on the calling thread. While it runs, space that others free is not used again: keep it short.
  ///
  /// - Parameter body: Reads; the transaction, and the bytes that it shows, cannot leave it. What it reads by the
  ///   transaction is of one moment.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws. ``StoreError``: `closed`; `full` where no reader slot is free; `ioFailed`.
  public func read<Result>(_ body: (borrowing LMDBTransaction) throws -> Result) throws -> Result {
    try lease.read(for: .read) { pointer in
      try body(LMDBTransaction(pointer: pointer, lease: lease))
    }
  }

  /// Reads and writes several stores as one step: all or nothing is written.
  ///
  /// Other writers, in this process and in others, wait; readers do not.
  ///
  /// - Parameter body: Reads and writes. It runs on the environment's own thread, and may block. It runs again where the
  ///   memory map had to be enlarged; only its last run counts. Where it throws nothing is changed. It must not write by
  ///   other means than its transaction.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws, unchanged. ``StoreError``: `closed`; `notPermitted` if the environment is only read;
  ///   `conflict` if its files were moved, removed or replaced; `full`; `ioFailed`, also where `body` has caught one of a
  ///   change. `CancellationError` if the task was cancelled before the transaction began.
  public func write<Result: Sendable>(
    _ body: @escaping @Sendable (inout LMDBTransaction) throws -> Result
  ) async throws -> Result {
    let lease = lease
    return try await lease.environment.writer.write(for: lease, during: .write) { pointer in
      var transaction = LMDBTransaction(pointer: pointer, lease: lease)
      let result: Result
      do {
        result = try ErrorOfBody.wrapping { try body(&transaction) }
      } catch {
        // Where the memory map is too small it is enlarged, whatever the body made of that.
        if let failure = transaction.failure, failure.code == MDB_MAP_FULL { throw failure }
        throw error
      }
      // A change that failed fails them all, even where the body has caught the error.
      if let failure = transaction.failure { throw failure }
      return result
    }
  }

  // MARK: Maintenance

  /// The names of the stores in the environment, in order, those that other programs made included.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`.
  public func storeNames() async throws -> [String] {
    try await lease.environment.writer.storeNames(for: lease)
  }

  /// The name of the codec that a store was written with.
  ///
  /// - Parameter name: The name of the store.
  /// - Returns: The name, or `nil` where there is no such store, or another program than Larder has made it.
  /// - Throws: ``StoreError``: `closed`; `ioFailed`.
  public func codecName(ofStore name: String) async throws -> String? {
    try await lease.environment.writer.codecName(ofStore: name, for: lease)
  }

  /// Measures the environment.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`.
  public func statistics() async throws -> LMDBStatistics {
    let lease = lease
    return try await lease.environment.maintenanceQueue.run {
      try lease.read(for: .statistics) { try lease.environment.statistics(in: $0) }
    }
  }

  /// Frees the slots that processes which were killed have left in the table of readers.
  ///
  /// It happens by itself on opening, every 1024 transactions, and when the table is full.
  ///
  /// - Returns: How many there were.
  /// - Throws: ``StoreError``: `closed`; `ioFailed`.
  @discardableResult
  public func clearStaleReaders() async throws -> Int {
    let lease = lease
    return try await lease.environment.maintenanceQueue.run {
      // Within a read, so that the environment is not closed meanwhile.
      try lease.read(for: .statistics) { _ in try lease.environment.readers.clearStaleSlots() }
    }
  }

  /// Writes a complete copy of the environment, as it is at one moment, while it is in use.
  ///
  /// The copy appears at its place when it is complete and durable, with a lock file, so that it can be opened to read only.
  ///
  /// - Parameters:
  ///   - path: Where it goes; nothing may be there yet. It becomes a folder where the environment is one, else a file.
  ///   - compacting: Whether free pages are left out, which takes longer; `false` unless said.
  /// - Throws: ``StoreError``: `invalidArgument` where something is at `path` already; `closed`; `full`; `ioFailed`, with the
  ///   outcome `unknown` if the copy is complete but may be lost at power loss.
  public func backup(to path: String, compacting: Bool = false) async throws {
    try await lease.backup(to: path, compacting: compacting)
  }

  /// Makes everything written before durable against power loss.
  ///
  /// It ignores cancellation. With ``Durability/synced`` there is something to do only if others have written with
  /// ``Durability/buffered``, now or in an earlier session.
  ///
  /// - Throws: ``StoreError``: `closed`; `conflict` if the files were moved, removed or replaced; `ioFailed`.
  public func synchronize() async throws {
    try await lease.environment.writer.synchronize(lease)
  }

  /// Waits for running operations, and closes the environment and the stores that were opened in it.
  ///
  /// Others that have opened the same path keep theirs. Closing again does nothing. It ignores cancellation.
  ///
  /// - Throws: ``StoreError``: `conflict` if the files were moved, removed or replaced; `ioFailed` if what was written could
  ///   not be made durable. It is closed all the same.
  public func close() async throws {
    try await lease.close()
  }
}

extension LMDBEnvironment: CustomStringConvertible {
  /// The kind and the name.
  public var description: String { "LMDBEnvironment(\(name))" }
}
#endif
