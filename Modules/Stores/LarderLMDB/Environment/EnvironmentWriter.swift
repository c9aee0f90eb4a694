#if LMDB
import CLMDB
import Larder
import LarderFiles

/// The one that writes to an environment, one transaction after another, on a thread of its own.
actor EnvironmentWriter {
  /// After how many transactions the slots of readers that were killed are looked for.
  ///
  /// Such a slot keeps every page in use that was freed since, so that the file grows.
  private static let transactionsPerCheck = 1024

  private nonisolated let executor = DispatchQueueExecutor(label: "Larder.LMDBEnvironment.writer")
  private var transactionCount = 0

  /// Why nothing is written any more: after a failed sync nobody knows what is on the disk.
  private var failure: LMDBError?

  /// Where tasks run that write time and again.
  nonisolated var taskExecutor: any TaskExecutor { executor.taskExecutor }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Runs a closure in a write transaction, and commits it.
  ///
  /// - Parameter body: It runs again where the memory map had to be enlarged.
  /// - Throws: What `body` throws, with nothing changed; ``StoreError``.
  func write<Result: Sendable>(
    for lease: EnvironmentLease, during operation: StoreOperation,
    _ body: @Sendable (_ transaction: OpaquePointer) throws -> Result
  ) throws -> Result {
    try lease.checkOpen(for: operation)
    try Task.checkCancellation()
    return try writeIgnoringCancellation(for: lease, during: operation, body)
  }

  private func writeIgnoringCancellation<Result: Sendable>(
    for lease: EnvironmentLease, during operation: StoreOperation,
    _ body: (_ transaction: OpaquePointer) throws -> Result
  ) throws -> Result {
    let environment = lease.environment
    try checkHealth(of: lease, for: operation)
    do {
      try clearStaleSlotsIfDue(in: environment)
      return try environment.withWriteLock { () throws in try environment.write(body) }
    } catch let error as ErrorOfBody {
      throw error.error
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: lease.name, message: "the changes could not be written")
    } catch let error as FailedCommit {
      let code = error.error.storeErrorCode(during: operation)
      if code != .full { failure = error.error }
      throw StoreError(
        error.error, during: operation, store: lease.name, message: "the changes could not be committed",
        outcome: error.outcome)
    }
  }

  /// Makes everything written before durable.
  func synchronize(_ lease: EnvironmentLease) throws {
    try lease.checkOpen(for: .synchronize)
    try synchronize(lease, during: .synchronize)
  }

  private func synchronize(_ lease: EnvironmentLease, during operation: StoreOperation) throws {
    // What a synced environment has committed is durable.
    guard lease.environment.durability == .buffered else { return }
    try checkHealth(of: lease, for: operation)
    do {
      try LMDBError.check(mdb_env_sync(lease.environment.pointer.pointer, 1))
    } catch {
      failure = error
      throw StoreError(
        error, during: operation, store: lease.name, message: "the changes could not be made durable", outcome: .unknown
      )
    }
  }

  /// Closes a lease after the writes that came before; later ones throw.
  ///
  /// - Returns: Why what was written may not be durable.
  func close(_ lease: EnvironmentLease) -> (any Error)? {
    guard !lease.isClosed else { return nil }
    defer { lease.markClosed() }
    do {
      try synchronize(lease, during: .close)
      return nil
    } catch {
      return error
    }
  }

  private func checkHealth(of lease: EnvironmentLease, for operation: StoreOperation) throws {
    guard let failure else { return }
    throw StoreError(
      .ioFailed, during: operation, store: lease.name,
      message: "an earlier write to the disk failed; close every store of the environment and open it again",
      underlying: failure)
  }

  private func clearStaleSlotsIfDue(in environment: SharedEnvironment) throws(LMDBError) {
    transactionCount += 1
    if transactionCount.isMultiple(of: EnvironmentWriter.transactionsPerCheck) {
      try environment.readers.clearStaleSlots()
    }
  }

  // MARK: Stores

  /// Opens the named database of a store.
  ///
  /// - Parameter codec: Gives the codec, by the name of the one in the store's record, or of that which suits a new one.
  /// - Throws: ``StoreError``; what `codec` throws.
  func openDatabase<Value: Sendable>(
    for lease: EnvironmentLease, named name: String, createsIfMissing: Bool,
    choosing codec: @Sendable (_ name: String) throws -> any Codec<Value>
  ) throws -> (identifier: MDB_dbi, codec: any Codec<Value>) {
    try lease.checkOpen(for: .open)
    let catalog = StoreCatalog(store: lease.name)
    do {
      let found = try lease.environment.withWriteLock { () throws in
        try lease.environment.readOnce { try catalog.find(name, in: $0) }
      }
      guard found != nil || createsIfMissing else {
        throw StoreError(
          .notFound, during: .open, store: lease.name, message: "the environment has no store of this name")
      }
      let codec = try codec(found?.record?.codec ?? "cbor")
      if let found {
        try catalog.check(found.record, codecName: codec.name)
        // An environment that someone else made has no record; one that is only read gets none.
        if found.record != nil || !createsIfMissing { return (found.identifier, codec) }
      }
      let identifier = try writeIgnoringCancellation(for: lease, during: .open) {
        try catalog.create(name, codecName: codec.name, in: $0)
      }
      return (identifier, codec)
    } catch let error as LMDBError {
      throw StoreError(error, during: .open, store: lease.name, message: "the named database cannot be opened")
    }
  }

  /// The name of the codec in the record of a store, where there is one.
  func codecName(ofStore name: String, for lease: EnvironmentLease) throws -> String? {
    try lease.checkOpen(for: .open)
    let catalog = StoreCatalog(store: lease.name)
    do {
      return try lease.environment.withWriteLock { () throws in
        try lease.environment.readOnce { try catalog.find(name, in: $0)?.record?.codec }
      }
    } catch let error as LMDBError {
      throw StoreError(error, during: .open, store: lease.name, message: "the record of the store cannot be read")
    }
  }

  /// The names of the named databases, in order, but for Larder's own.
  func storeNames(for lease: EnvironmentLease) throws -> [String] {
    try lease.checkOpen(for: .storeNames)
    let catalog = StoreCatalog(store: lease.name)
    do {
      return try lease.environment.withWriteLock { () throws in
        var candidates = try lease.environment.readOnce { try catalog.candidates(in: $0) }[...]
        var names: [String] = []
        while !candidates.isEmpty {
          names += try lease.environment.readOnce(keepingHandles: false) {
            try catalog.names(among: &candidates, in: $0)
          }
        }
        return names
      }
    } catch let error as LMDBError {
      throw StoreError(error, during: .storeNames, store: lease.name, message: "the names cannot be read")
    }
  }
}
#endif
