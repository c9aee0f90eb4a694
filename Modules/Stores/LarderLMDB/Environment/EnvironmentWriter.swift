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

  /// Why nothing is written any more.
  private enum Obstacle {
    /// A commit failed, so what is on the disk is not known.
    case disk(LMDBError)
    /// A file was moved, removed or replaced.
    case files(OpenedFiles.Mismatch)
  }

  private var obstacle: Obstacle?

  /// The latest transaction that is known to be durable.
  private(set) var durableTransaction = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Runs a closure in a write transaction, and commits it.
  ///
  /// - Parameter body: It runs again if the memory map had to be enlarged.
  /// - Throws: What `body` throws, with nothing changed; ``StoreError``; `CancellationError`, with nothing changed, if the
  ///   task is cancelled before `body` begins.
  func write<Result: Sendable>(
    for lease: EnvironmentLease, during operation: StoreOperation,
    _ body: @Sendable (_ transaction: OpaquePointer) throws -> Result
  ) throws -> Result {
    try lease.checkOpen(for: operation)
    try lease.checkWritable(for: operation)
    try Task.checkCancellation()
    var hasBegun = false
    return try writeIgnoringCancellation(for: lease, during: operation) { transaction in
      // Another process may have let this one wait for its turn.
      if !hasBegun { try Task.checkCancellation() }
      hasBegun = true
      return try body(transaction)
    }
  }

  private func writeIgnoringCancellation<Result: Sendable>(
    for lease: EnvironmentLease, during operation: StoreOperation,
    _ body: (_ transaction: OpaquePointer) throws -> Result
  ) throws -> Result {
    let environment = lease.environment
    try checkHealth(of: lease, for: operation)
    do {
      try clearStaleSlotsIfDue(in: environment)
      let (result, identifier) = try environment.withWriteLock { () throws in try environment.write(body) }
      try confirm(identifier, for: lease, during: operation)
      return result
    } catch let error as ErrorOfBody {
      throw error.error
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: lease.name, message: "the changes could not be written")
    } catch let error as FailedCommit {
      // Without room or memory nothing was written that matters; after other errors the disk is in an unknown state.
      let isHarmless = error.error.storeErrorCode(during: operation) == .full || error.error.isTransient
      if !isHarmless { obstacle = .disk(error.error) }
      throw StoreError(
        error.error, during: operation, store: lease.name, message: "the changes could not be committed",
        outcome: error.outcome)
    } catch {
      throw fileError(error, of: lease, for: operation)
    }
  }

  /// Notes that a transaction was committed, or makes durable what one saw that changed nothing.
  ///
  /// LMDB does not write such a transaction; and what it saw may be the commit of a process that had the environment open
  /// with `buffered`.
  private func confirm(_ identifier: Int, for lease: EnvironmentLease, during operation: StoreOperation) throws {
    guard lease.environment.durability == .synced else { return }
    if lease.environment.lastTransaction >= identifier {
      durableTransaction = identifier
    } else if durableTransaction < identifier - 1 {
      try makeDurable(lease, during: operation)
    }
  }

  /// Makes everything written before durable.
  func synchronize(_ lease: EnvironmentLease) throws {
    try lease.checkOpen(for: .synchronize)
    guard lease.environment.access == .readWrite else { return }
    try checkHealth(of: lease, for: .synchronize)
    // What a synced environment has committed is durable; an earlier session of another kind may have left more.
    let isDurable =
      lease.environment.durability == .synced && lease.environment.lastTransaction <= durableTransaction
    if isDurable {
      try checkFiles(of: lease, for: .synchronize)
    } else {
      try makeDurable(lease, during: .synchronize)
    }
  }

  private func makeDurable(_ lease: EnvironmentLease, during operation: StoreOperation) throws {
    try checkHealth(of: lease, for: operation)
    try checkFiles(of: lease, for: operation)
    do {
      let latest = lease.environment.lastTransaction
      try LMDBError.check(mdb_env_sync(lease.environment.pointer.pointer, 1))
      durableTransaction = latest
    } catch {
      obstacle = .disk(error)
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
    guard lease.environment.access == .readWrite else { return nil }
    do {
      if lease.environment.durability == .buffered {
        try makeDurable(lease, during: .close)
      } else {
        try checkFiles(of: lease, for: .close)
      }
      return nil
    } catch {
      return error
    }
  }

  private func checkFiles(of lease: EnvironmentLease, for operation: StoreOperation) throws {
    do {
      try lease.environment.checkFiles()
    } catch {
      throw fileError(error, of: lease, for: operation)
    }
  }

  /// The error of the store for one of its files, or any other as it is.
  private func fileError(
    _ error: any Error, of lease: EnvironmentLease, for operation: StoreOperation
  ) -> any Error {
    switch error {
    case let error as MovedFiles:
      obstacle = .files(error.mismatch)
      return movedError(error.mismatch, of: lease, for: operation)
    case let error as FileError:
      return StoreError(
        error, during: operation, store: lease.name, message: "the files of the environment could not be checked")
    default:
      return error
    }
  }

  private func movedError(
    _ mismatch: OpenedFiles.Mismatch, of lease: EnvironmentLease, for operation: StoreOperation
  ) -> StoreError {
    StoreError(
      .conflict, during: operation, store: lease.name,
      message: "\(mismatch.path) was \(mismatch.isMissing ? "moved or removed" : "replaced") while the environment was "
        + "open, so nothing more is written through it; close every store of the environment and open it again")
  }

  private func checkHealth(of lease: EnvironmentLease, for operation: StoreOperation) throws {
    switch obstacle {
    case nil: return
    case .files(let mismatch)?: throw movedError(mismatch, of: lease, for: operation)
    case .disk(let error)?:
      throw StoreError(
        .ioFailed, during: operation, store: lease.name,
        message:
          "an earlier write to the disk failed, so nothing more is written; back the environment up to a new path, "
          + "on a disk that works, and go on with the copy",
        underlying: error)
    }
  }

  private func clearStaleSlotsIfDue(in environment: SharedEnvironment) throws(LMDBError) {
    transactionCount += 1
    if transactionCount.isMultiple(of: EnvironmentWriter.transactionsPerCheck) {
      try environment.readers.clearStaleSlots()
    }
  }

  // MARK: Stores

  /// Opens the named database of a store, and counts its handle for the lease of the store.
  ///
  /// - Parameter codec: Gives the codec, by the name of the one in the store's record, or of that which suits a new one.
  /// - Throws: ``StoreError``; what `codec` throws.
  func openDatabase<Value: Sendable>(
    for lease: EnvironmentLease, named name: String, createsIfMissing: Bool,
    choosing codec: @Sendable (_ name: String) throws -> any Codec<Value>
  ) throws -> (identifier: MDB_dbi, codec: any Codec<Value>) {
    try lease.checkOpen(for: .open)
    let catalog = StoreCatalog(store: lease.name)
    let environment = lease.environment
    let mayCreate = createsIfMissing && environment.access == .readWrite
    do {
      let found = try environment.withWriteLock { () throws in
        try environment.readOnce(keepingHandles: false) { try catalog.find(name, in: $0) }
      }
      guard found != nil || mayCreate else {
        throw StoreError(
          .notFound, during: .open, store: lease.name, message: "the environment has no store of this name")
      }
      let codec = try codec(found?.record?.codec ?? "cbor")
      if found != nil { try catalog.check(found?.record, codecName: codec.name) }
      try environment.withWriteLock { () throws in try environment.makeRoomForHandle(of: StoreKey(name)) }
      // An environment that someone else made has no record; one that is only read gets none.
      let identifier =
        if found?.record == nil && mayCreate {
          try writeIgnoringCancellation(for: lease, during: .open) {
            try catalog.create(name, codecName: codec.name, in: $0)
          }
        } else {
          try environment.withWriteLock { () throws in
            try environment.readOnce { try catalog.identifier(of: name, in: $0) }
          }
        }
      lease.retainHandle(identifier, of: StoreKey(name))
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
        try lease.environment.readOnce(keepingHandles: false) { try catalog.find(name, in: $0)?.record?.codec }
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
