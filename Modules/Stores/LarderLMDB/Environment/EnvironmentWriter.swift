#if LMDB
import CLMDB
import Larder
import LarderFiles

/// The writer of an environment. It runs one transaction after another on its own thread.
actor EnvironmentWriter {
  /// The number of transactions between checks for the reader slots of killed processes.
  ///
  /// Such a slot keeps all pages in use that were freed since, so the file grows.
  private static let transactionsPerCheck = 1024

  private nonisolated let executor = DispatchQueueExecutor(label: "Larder.LMDBEnvironment.writer")
  private var transactionCount = 0

  /// A reason to refuse further writes.
  private enum Obstacle {
    /// A commit failed, so the state of the disk is unknown.
    case disk(LMDBError)
    /// A file was moved, removed or replaced.
    case files(OpenedFiles.Mismatch)
    /// An older state was written over the data file.
    case exchanged
  }

  private var obstacle: Obstacle?

  /// The highest number that the latest transaction had when a transaction of this process began or ended.
  private var latestSeen = 0

  /// The number of the latest transaction known to be durable.
  private(set) var durableTransaction = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Runs a closure in a write transaction, and commits the transaction if the closure decides so.
  ///
  /// - Parameters:
  ///   - handle: The handle of the caller.
  ///   - operation: The operation, for errors.
  ///   - turn: The turn of a call with a time limit. Defaults to `nil`, for no limit.
  ///   - body: The closure. It also records its changes. It runs again if the memory map has to be enlarged.
  /// - Throws: The error that `body` throws, with nothing changed; ``StoreError``; `CancellationError`, with nothing
  ///   changed, if the task is cancelled or the call is given up before `body` begins.
  func write<Result: Sendable>(
    for handle: EnvironmentHandle, during operation: StoreOperation, turn: WriteTurn? = nil,
    _ body: @Sendable (OpaquePointer, inout CommitRecord<MDB_dbi>) throws -> UpdateDecision<Result>
  ) throws -> Result {
    try handle.checkOpen(for: operation)
    try handle.information.checkWritable(for: operation)
    try Task.checkCancellation()
    try turn?.check()
    var hasBegun = false
    return try commit(for: handle, during: operation) { transaction, changes in
      // The task may have been cancelled while another process held the write lock.
      if !hasBegun {
        try Task.checkCancellation()
        try turn?.begin()
      }
      hasBegun = true
      return try body(transaction, &changes)
    }
  }

  /// Runs a closure in a write transaction, and ends it as the closure decides, even if the task is cancelled.
  private func commit<Result: Sendable>(
    for handle: EnvironmentHandle, during operation: StoreOperation,
    _ body: (OpaquePointer, inout CommitRecord<MDB_dbi>) throws -> UpdateDecision<Result>
  ) throws -> Result {
    let environment = handle.environment
    try checkHealth(of: handle, for: operation)
    var changes = CommitRecord<MDB_dbi>(isRecording: environment.observers.areObserving)
    do {
      try clearStaleSlotsIfDue(in: environment)
      let (result, identifier) = try environment.withWriteLock { () throws in
        while true {
          if let committed = try attempt(for: handle, during: operation, &changes, body) { return committed }
          changes.removeAll()
          try environment.enlargeMap()
        }
      }
      // A discarded transaction has no number: there is nothing to report or to make durable.
      guard let identifier else { return result }
      environment.observers.report(changes, hasWritten: changes.hasWritten)
      try confirm(identifier, hasWritten: changes.hasWritten, for: handle, during: operation)
      return result
    } catch let error as StoreError where error.outcome == .unknown {
      environment.observers.report(changes, hasWritten: false)
      throw error
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: handle.name, message: "the changes could not be written")
    }
  }

  /// Runs a closure in a write transaction, and ends it as the closure decides.
  ///
  /// The write lock must be held.
  ///
  /// - Returns: The result, and the number of the transaction, which LMDB reuses if nothing was changed, or `nil` if the closure
  ///   decided to discard it. `nil` if the memory map is too small, with nothing changed.
  private func attempt<Result: Sendable>(
    for handle: EnvironmentHandle, during operation: StoreOperation, _ changes: inout CommitRecord<MDB_dbi>,
    _ body: (OpaquePointer, inout CommitRecord<MDB_dbi>) throws -> UpdateDecision<Result>
  ) throws -> (result: Result, identifier: Int?)? {
    let transaction = try handle.environment.begin(0)
    let identifier = mdb_txn_id(transaction)
    let decision: UpdateDecision<Result>
    do {
      // Before the body, because a large transaction writes pages before it is committed.
      try checkFiles(of: handle, for: operation)
      try checkContent(before: identifier, of: handle, for: operation)
      decision = try body(transaction, &changes)
      if decision.isCommit { try checkFiles(of: handle, for: operation) }
    } catch {
      mdb_txn_abort(transaction)
      guard let error = error as? LMDBError else { throw error }
      if error.code == MDB_MAP_FULL { return nil }
      throw handle.environment.opened.named(error)
    }
    guard decision.isCommit else {
      mdb_txn_abort(transaction)
      return (decision.result, nil)
    }
    let observers = handle.environment.observers
    observers.willCommit(identifier)
    // The transaction ends whether the commit succeeds or fails.
    let code = mdb_txn_commit(transaction)
    if code == MDB_SUCCESS {
      if changes.hasWritten { latestSeen = identifier }
      return (decision.result, identifier)
    }
    observers.didNotCommit()
    if code == MDB_MAP_FULL { return nil }
    throw commitError(LMDBError(code: code), of: identifier, for: handle, during: operation)
  }

  /// Determines the outcome of a transaction whose commit failed, and stops writing if the state of the disk is unknown.
  private func commitError(
    _ error: LMDBError, of identifier: Int, for handle: EnvironmentHandle, during operation: StoreOperation
  ) -> StoreError {
    let error = handle.environment.opened.named(error)
    // If space or memory ran out, the file is intact.
    if !error.isTransient { obstacle = .disk(error) }
    var outcome = StoreError.Outcome.unknown
    // After a failure of the meta page, LMDB refuses to begin a transaction.
    if let transaction = try? handle.environment.begin(MDB_RDONLY) {
      if mdb_txn_id(transaction) < identifier { outcome = .nothingChanged }
      mdb_txn_abort(transaction)
    }
    return StoreError(
      error, during: operation, store: handle.name, message: "the changes could not be committed", outcome: outcome)
  }

  /// Records a committed transaction as durable.
  ///
  /// If the transaction changed nothing, makes the state that it saw durable.
  ///
  /// LMDB does not write an unchanged transaction, and the state that it saw may be the commit of a process that opened
  /// the environment with `buffered`.
  private func confirm(
    _ identifier: Int, hasWritten: Bool, for handle: EnvironmentHandle, during operation: StoreOperation
  ) throws {
    guard handle.environment.durability == .synced else { return }
    if hasWritten {
      durableTransaction = identifier
    } else if durableTransaction < identifier - 1 {
      try makeDurable(handle, during: operation)
    }
  }

  /// Flushes all previous writes to disk.
  func synchronize(_ handle: EnvironmentHandle) throws {
    try handle.checkOpen(for: .synchronize)
    guard handle.environment.access == .readWrite else { return }
    try checkHealth(of: handle, for: .synchronize)
    // The commits of a synced environment are durable. An earlier buffered session may have left others.
    let latest = handle.environment.withWriteLock { handle.environment.lastTransaction }
    let isDurable = handle.environment.durability == .synced && latest <= durableTransaction
    if isDurable {
      try checkFiles(of: handle, for: .synchronize)
    } else {
      try makeDurable(handle, during: .synchronize)
    }
  }

  private func makeDurable(_ handle: EnvironmentHandle, during operation: StoreOperation) throws {
    try checkHealth(of: handle, for: operation)
    try checkFiles(of: handle, for: operation)
    do {
      let latest = handle.environment.withWriteLock { handle.environment.lastTransaction }
      try LMDBError.check(mdb_env_sync(handle.environment.pointer, 1))
      durableTransaction = latest
    } catch {
      obstacle = .disk(error)
      throw StoreError(
        error, during: operation, store: handle.name, message: "the changes could not be made durable",
        outcome: .unknown
      )
    }
  }

  /// Closes a handle after all previous writes.
  ///
  /// Later writes throw.
  ///
  /// - Returns: The error if previous writes may not be durable.
  func close(_ handle: EnvironmentHandle) -> (any Error)? {
    guard !handle.isClosed else { return nil }
    defer { handle.markClosed() }
    guard handle.environment.access == .readWrite else { return nil }
    do {
      if handle.environment.durability == .buffered {
        try makeDurable(handle, during: .close)
      } else {
        try checkFiles(of: handle, for: .close)
      }
      return nil
    } catch {
      return error
    }
  }

  /// Throws an error, now and from now on, if an open file is no longer at its path.
  ///
  /// It only reads the status of the files. Opening and closing one would release the process's locks on it.
  private func checkFiles(of handle: EnvironmentHandle, for operation: StoreOperation) throws {
    do {
      guard let mismatch = try handle.environment.openedFiles.firstMismatch(in: POSIXFileSystem()) else { return }
      obstacle = .files(mismatch)
    } catch {
      throw StoreError(
        error, during: operation, store: handle.name, message: "the files of the environment could not be checked")
    }
    try checkHealth(of: handle, for: operation)
  }

  /// Throws an error, now and from now on, if an older state was written over the data file, as by a restore in place.
  ///
  /// The numbers of transactions never decrease. The data file has the number of the latest one, and the lock file has it
  /// too unless it was exchanged as well.
  ///
  /// - Parameter identifier: The number of a write transaction that has just begun. The write lock must be held.
  private func checkContent(
    before identifier: Int, of handle: EnvironmentHandle, for operation: StoreOperation
  ) throws {
    let latest = handle.environment.lastTransaction
    if latest < identifier - 1 || latest < latestSeen { obstacle = .exchanged }
    latestSeen = max(latestSeen, latest)
    try checkHealth(of: handle, for: operation)
  }

  /// Throws an error if writing has stopped.
  private func checkHealth(of handle: EnvironmentHandle, for operation: StoreOperation) throws {
    func conflict(_ problem: String) -> StoreError {
      StoreError(
        .conflict, during: operation, store: handle.name,
        message: "\(problem) while the environment was open, so writing has stopped; close all stores of the "
          + "environment and open it again")
    }
    switch obstacle {
    case nil: return
    case .files(let mismatch)?: throw conflict("\(mismatch)")
    case .exchanged?: throw conflict("another program has written an older state over the data file")
    case .disk(let error)?:
      throw StoreError(
        .ioFailed, during: operation, store: handle.name,
        message:
          "an earlier write to the disk failed, so writing has stopped; back up the environment to a new path "
          + "on a working disk and continue with the copy",
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

  /// Opens the named database of a store, and retains it for the handle of the store.
  ///
  /// A named database created by another program has no record. It gets one if `newCodecName` is not `nil`, except in a
  /// read-only environment.
  ///
  /// - Returns: The database, and the name of the codec in the store's record, or `nil` if it doesn't have one.
  /// - Throws: ``StoreError``.
  func openDatabase(
    for handle: EnvironmentHandle, named name: String, createsIfMissing: Bool, newCodecName: String?, turn: WriteTurn?
  ) throws -> (identifier: MDB_dbi, codecName: String?) {
    try handle.checkOpen(for: .open)
    try turn?.check()
    let catalog = StoreCatalog(store: handle.name)
    let environment = handle.environment
    let mayCreate = createsIfMissing && environment.access == .readWrite
    do {
      let found = try environment.readOnce(keepingHandles: false) { try catalog.find(name, in: $0) }
      guard found != nil || mayCreate else {
        throw StoreError(
          .notFound, during: .open, store: handle.name, message: "the environment has no store of this name")
      }
      if let record = found?.record { try catalog.check(record) }
      guard found == nil || found?.record != nil || newCodecName != nil else {
        throw StoreError.unrecordedCodec(of: "named database", store: handle.name)
      }
      try environment.withWriteLock { () throws in try environment.makeRoomForDatabase(named: StoreKey(name)) }
      var codecName = found?.record?.codec
      let identifier: MDB_dbi
      if codecName == nil, mayCreate {
        (identifier, codecName) = try commit(for: handle, during: .open) { transaction, changes in
          try turn?.begin()
          let created = try catalog.create(
            name, codecName: newCodecName ?? UntypedDatabase.defaultCodecName, in: transaction)
          if created.isNew { changes.noteWrite() }
          return .commit((created.identifier, created.codecName))
        }
      } else {
        identifier = try environment.readOnce { try catalog.identifier(of: name, in: $0) }
        try turn?.begin()
      }
      handle.retainDatabase(named: StoreKey(name), identifier)
      return (identifier, codecName)
    } catch let error as LMDBError {
      throw StoreError(error, during: .open, store: handle.name, message: "the named database cannot be opened")
    }
  }

  /// Removes the named database and the record of a store; see ``LMDBEnvironment/removeStore(_:)``.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func removeDatabase(for handle: EnvironmentHandle, named name: String, turn: WriteTurn?) throws {
    try turn?.check()
    let operation = StoreOperation.removeStore
    let (environment, catalog) = (handle.environment, StoreCatalog(store: handle.name, operation: operation))
    try environment.withWriteLock { () throws in
      guard environment.closeDatabase(named: StoreKey(name)) else {
        throw StoreError(
          .locked, during: operation, store: handle.name,
          message: "this process has the store \(name) open; close it first")
      }
      try environment.makeRoomForDatabase(named: StoreKey(name))
    }
    try write(for: handle, during: operation, turn: turn) { transaction, changes in
      try catalog.remove(name, in: transaction)
      changes.noteWrite()
      return .commit(())
    }
  }

  /// Compares a label with the one in a store's record, and records it there if there isn't one and the store may
  /// write.
  ///
  /// - Throws: ``StoreError``, with `invalidArgument` if the label is invalid and `versionMismatch` if it is another one.
  func label(_ handle: EnvironmentHandle, named name: String, contents: String, turn: WriteTurn?) throws {
    try handle.checkOpen(for: .open)
    try turn?.check()
    let catalog = StoreCatalog(store: handle.name)
    let environment = handle.environment
    do {
      let found = try environment.readOnce(keepingHandles: false) { try catalog.find(name, in: $0) }
      let isRecorded = try catalog.check(contents, against: found?.record)
      guard !isRecorded, found?.record != nil, environment.access == .readWrite else { return }
      try commit(for: handle, during: .open) { transaction, changes in
        try turn?.begin()
        if try catalog.record(contents, of: name, in: transaction) { changes.noteWrite() }
        return .commit(())
      }
    } catch let error as LMDBError {
      throw StoreError(error, during: .open, store: handle.name, message: "the label of the store cannot be recorded")
    }
  }

  /// Returns the names of the named databases in ascending order, without Larder's own.
  func storeNames(for handle: EnvironmentHandle) throws -> [String] {
    try handle.checkOpen(for: .storeNames)
    let catalog = StoreCatalog(store: handle.name)
    let environment = handle.environment
    do {
      // One at a time, because not all of them may fit into the environment.
      return try environment.readOnce { try catalog.candidates(in: $0) }.filter { name in
        try environment.readOnce(keepingHandles: false) { try catalog.isDatabase(name, in: $0) }
      }
    } catch let error as LMDBError {
      throw StoreError(error, during: .storeNames, store: handle.name, message: "the names cannot be read")
    }
  }
}
#endif
