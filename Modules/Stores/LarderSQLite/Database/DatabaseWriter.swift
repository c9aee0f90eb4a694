#if SQLite
import CSQLite
import Larder
import LarderFiles
import LarderSQLiteFormat

/// The writer of a database. It runs one transaction after another on its own thread, with its own connection.
actor DatabaseWriter {
  /// The number of frames in the log from which it is moved into the database file, as SQLite does by itself.
  private static let checkpointFrameCount = 1000

  private nonisolated let executor = DispatchQueueExecutor(label: "Larder.SQLiteDatabase.writer")

  /// The writes that wait for the lock of another connection, of which one tries to get it.
  private let turns = WriteGate()

  /// The number of writes in ``turns``, behind which new ones wait.
  private var waitingCount = 0

  /// The connection, or `nil` before the first use and after a failure of the disk.
  private(set) var connection: SQLiteConnection?

  /// A Boolean value that indicates whether the connection has found the database in the mode of the write-ahead log.
  private(set) var hasLog = false

  /// A Boolean value that indicates whether the connection has synced the names of its files.
  private var hasSyncedFolder = false

  /// The files that must be at their paths whenever something is written.
  private var openedFiles = OpenedFiles()

  /// The file that was moved, removed or replaced, after which nothing is written.
  private(set) var mismatch: OpenedFiles.Mismatch?

  /// The number with which the connection shows commits of others.
  private var dataVersion: Int64 = 0

  /// A Boolean value that indicates whether others may have committed while there was no connection.
  private var hasMissedCommits = false

  private var generation = 0

  /// A Boolean value that indicates whether a change of a table may change other entries, and the generation for which
  /// this is known.
  private var sideEffects = (ofTables: [[UInt8]: Bool](), generation: -1)

  /// A Boolean value that indicates whether the database was closed, although a poll may still come.
  private var isClosed = false

  /// A Boolean value that indicates whether everything that the connection has seen is durable.
  var isDurable = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  // MARK: Transactions

  /// Runs a closure in a transaction that writes, and commits the transaction if the closure decides so.
  ///
  /// - Parameters:
  ///   - handle: The handle that writes.
  ///   - operation: The operation, for errors.
  ///   - deadline: The time after which the lock of another connection is not waited for.
  ///   - isRepeatable: A Boolean value that indicates whether the closure may run a second time, after its changes
  ///     could not be written because the disk is full. Defaults to `true`.
  ///   - body: The closure. It also records its changes.
  /// - Throws: The error that `body` throws, with nothing changed; ``StoreError``; `CancellationError`, with nothing
  ///   changed, if the task is cancelled before `body` begins.
  func write<Result: Sendable>(
    for handle: DatabaseHandle, during operation: StoreOperation, until deadline: ContinuousClock.Instant,
    isRepeatable: Bool = true, _ body: @Sendable (inout Transaction) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    try handle.information.checkWritable(for: operation)
    if waitingCount == 0 {
      do {
        return try commit(for: handle, during: operation, isRepeatable: isRepeatable, body)
      } catch is LockIsTaken {}
    }
    // In the order of their arrival, without holding up the other calls of this actor.
    waitingCount += 1
    defer { waitingCount -= 1 }
    return try await turns.withAccess(.exclusive) {
      try await LockIsTaken.retrying(until: deadline) {
        try commit(for: handle, during: operation, isRepeatable: isRepeatable, body)
      }
    }
  }

  /// Runs a closure in a transaction, if no other connection has the lock.
  ///
  /// If the disk is full, the log is moved into the database file. This needs no space unless the file grows. The next
  /// transaction then uses the space of the log again, so entries can be removed.
  ///
  /// - Throws: `LockIsTaken` before `body` runs; the errors of ``write(for:during:until:isRepeatable:_:)``.
  private func commit<Result: Sendable>(
    for handle: DatabaseHandle, during operation: StoreOperation, isRepeatable: Bool,
    _ body: (inout Transaction) throws -> UpdateDecision<Result>
  ) throws -> Result {
    do {
      return try commitOnce(for: handle, during: operation, body)
    } catch let error as StoreError where error.code == .full && error.outcome == .nothingChanged {
      guard moveLog(), isRepeatable else { throw error }
      return try commitOnce(for: handle, during: operation, body)
    }
  }

  /// Runs a closure in a transaction, if no other connection has the lock.
  private func commitOnce<Result: Sendable>(
    for handle: DatabaseHandle, during operation: StoreOperation,
    _ body: (inout Transaction) throws -> UpdateDecision<Result>
  ) throws -> Result {
    try Task.checkCancellation()
    let connection = try connection(for: handle, operation)
    try attempting(for: handle, operation, "the transaction cannot begin; another one may hold the lock") {
      if !hasLog { try beginLog(on: connection, handle.database.file, store: handle.name) }
      if handle.database.durability == .synced, !hasSyncedFolder { try synchronizeFolder(of: handle.database.file) }
      // Immediately, because a transaction that begins to write later fails if others have written in the meantime.
      try connection.withStatement("BEGIN IMMEDIATE") { _ = try $0.step() }
    }
    let observers = handle.database.observers
    // Commits of others are noticed once, so they are reported whatever happens next.
    var followsOthers = false
    defer { if followsOthers { observers.reportOthers() } }
    var transaction: Transaction
    // If set, more than the recorded changes must be reported.
    let hasSideEffects: Bool
    let decision: UpdateDecision<Result>
    let commitCount = connection.logCommitCount
    do {
      followsOthers = try noteOthers(on: connection)
      transaction = Transaction(
        connection: connection, generation: generation, changes: CommitRecord(isRecording: observers.areObserving))
      // Before the body, because a large transaction writes pages before it is committed.
      try checkFiles(of: handle, for: operation)
      decision = try body(&transaction)
      guard decision.isCommit else {
        rollBack(connection)
        return decision.result
      }
      hasSideEffects = try haveSideEffects(transaction)
      try checkFiles(of: handle, for: operation)
    } catch {
      rollBack(connection)
      guard let error = error as? SQLiteError else { throw error }
      throw failed(error, for: handle, operation, "the changes could not be written")
    }
    do {
      try connection.withStatement("COMMIT") { _ = try $0.step() }
    } catch let error as SQLiteError {
      rollBack(connection)
      // The log may hold the whole transaction although the disk reported an error.
      let isUnknown = SQLiteResultCode.leavesCommitInDoubt(error.code, errorNumber: error.errorNumber)
      if isUnknown { observers.report(transaction.changes, hasSideEffects: hasSideEffects) }
      throw failed(
        error, for: handle, operation, "the changes could not be committed",
        outcome: isUnknown ? .unknown : .nothingChanged)
    }
    if transaction.hasChangedCatalog { generation += 1 }
    observers.report(transaction.changes, hasSideEffects: hasSideEffects)
    try confirm(hasWritten: connection.logCommitCount != commitCount, for: handle, during: operation)
    // After the caller has its answer.
    if connection.logFrameCount >= DatabaseWriter.checkpointFrameCount { Task { moveLog() } }
    return decision.result
  }

  /// Notes that a commit made everything durable, or does so if it changed nothing.
  ///
  /// SQLite writes nothing for an unchanged transaction, and the state that it saw may be the commit of a process that
  /// opened the database with `buffered`.
  private func confirm(hasWritten: Bool, for handle: DatabaseHandle, during operation: StoreOperation) throws {
    guard handle.database.durability == .synced else {
      if hasWritten { isDurable = false }
      return
    }
    if hasWritten {
      isDurable = true
    } else if !isDurable {
      try makeDurable(handle, during: operation)
    }
  }

  private func rollBack(_ connection: SQLiteConnection) {
    // Some errors have ended the transaction already.
    guard connection.isInTransaction else { return }
    do {
      try connection.run("ROLLBACK")
    } catch {
      // A new connection finds the state before the transaction.
      disconnect()
    }
  }

  /// Runs a closure that changes no entries, and converts errors of SQLite and of the file system to store errors.
  ///
  /// - Throws: `LockIsTaken` if another connection has a lock; ``StoreError``; the error that `body` throws.
  func attempting<Result>(
    for handle: DatabaseHandle, _ operation: StoreOperation, _ message: String, isWrite: Bool = true,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      let failure = failed(error, for: handle, operation, message, isWrite: isWrite)
      throw error.isBusy ? LockIsTaken(error: failure) : failure
    } catch let error as FileError {
      throw StoreError(
        error, during: operation, store: handle.name, message: "the log cannot be examined, or its folder not be synced"
      )
    }
  }

  /// Returns the store error of a failed call, and gives up the connection after a failure of the disk.
  func failed(
    _ error: SQLiteError, for handle: DatabaseHandle, _ operation: StoreOperation, _ message: String,
    outcome: StoreError.Outcome = .nothingChanged, isWrite: Bool = true
  ) -> StoreError {
    if error.primaryCode == SQLITE_IOERR { disconnect() }
    return StoreError(
      error, during: operation, store: handle.name, message: message, outcome: outcome, isWrite: isWrite)
  }

  // MARK: The connection

  /// Returns the connection.
  ///
  /// It is opened at the first use.
  ///
  /// - Throws: ``StoreError``; `LockIsTaken`.
  func connection(for handle: DatabaseHandle, _ operation: StoreOperation) throws -> SQLiteConnection {
    // One whose transaction could not be ended is replaced.
    if let connection, !connection.isInTransaction { return connection }
    return try attempting(for: handle, operation, "the database cannot be opened") {
      try connect(to: handle.database, store: handle.name)
    }
  }

  private func connect(to database: SharedDatabase, store: String) throws -> SQLiteConnection {
    let file = database.file
    let opened = try file.connect(writes: true, waits: false, store: store)
    // A read opens the log.
    _ = try opened.integer("SELECT count(*) FROM sqlite_schema")
    dataVersion = try opened.dataVersion()
    if mismatch == nil {
      openedFiles = OpenedFiles()
      openedFiles.note(file.identity, at: file.path, as: .data)
    }
    hasSyncedFolder = false
    hasLog = try file.hasLog(on: opened)
    if hasLog { try noteLog(of: file) }
    // Others may have committed while there was no connection.
    hasMissedCommits = generation > 0
    generation += 1
    isDurable = false
    connection = opened
    return opened
  }

  /// Sets the database to the mode of the write-ahead log.
  ///
  /// - Throws: ``StoreError``; `SQLiteError`; `FileError`.
  private func beginLog(on connection: SQLiteConnection, _ file: DatabaseFile, store: String) throws {
    try DatabaseFile.beginLog(on: connection, store: store)
    _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
    try noteLog(of: file)
    hasLog = true
  }

  /// Notes the files of the log, which a read has opened.
  private func noteLog(of file: DatabaseFile) throws(FileError) {
    guard mismatch == nil else { return }
    if let log = try POSIXFileSystem().identity(at: file.logPath) {
      openedFiles.note(log, at: file.logPath, as: .data)
    }
    if let index = try POSIXFileSystem().identity(at: file.indexPath) {
      openedFiles.note(index, at: file.indexPath, as: .lock)
    }
  }

  /// Closes the connection until the next use.
  func disconnect() {
    connection = nil
  }

  /// Closes the connection permanently.
  func close() {
    isClosed = true
    disconnect()
  }

  /// Notes commits of other connections.
  ///
  /// - Returns: A Boolean value that indicates whether there may have been any since the last call.
  private func noteOthers(on connection: SQLiteConnection) throws -> Bool {
    let version = try connection.dataVersion()
    guard version != dataVersion || hasMissedCommits else { return false }
    dataVersion = version
    hasMissedCommits = false
    generation += 1
    isDurable = false
    return true
  }

  /// Returns whether a transaction may have changed more entries than it has recorded.
  private func haveSideEffects(_ transaction: Transaction) throws -> Bool {
    if sideEffects.generation != generation { sideEffects = ([:], generation) }
    for table in transaction.changes.changes.keys {
      let known = sideEffects.ofTables[table]
      let hasEffects = try known ?? StoreCatalog.hasSideEffects(onTable: table, on: transaction.connection)
      if known == nil { sideEffects.ofTables[table] = hasEffects }
      if hasEffects { return true }
    }
    return false
  }

  /// Reports commits of others to the observers.
  func reportOthers(in database: SharedDatabase) {
    guard !isClosed else { return }
    do {
      guard try POSIXFileSystem().identity(at: database.file.path) == database.file.identity else {
        // Nothing is committed to this file any more.
        database.observers.endAll()
        return
      }
      guard try noteOthers(on: connection ?? connect(to: database, store: database.file.path)) else { return }
    } catch {
      // The next poll asks again.
      return
    }
    database.observers.reportOthers()
  }

  // MARK: Files

  /// Throws an error, now and from now on, if an open file is no longer at its path.
  ///
  /// It only reads the status of the files. Opening and closing one would release the process's locks on it.
  func checkFiles(of handle: DatabaseHandle, for operation: StoreOperation) throws {
    do {
      if mismatch == nil { mismatch = try openedFiles.firstMismatch(in: POSIXFileSystem()) }
    } catch {
      throw StoreError(
        error, during: operation, store: handle.name, message: "the files of the database could not be checked")
    }
    guard let mismatch else { return }
    throw StoreError(
      .conflict, during: operation, store: handle.name,
      message: "\(mismatch) while the database was open, so writing has stopped; close all stores of the database and "
        + "open it again")
  }

  /// Flushes all previous writes to disk.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func synchronize(_ handle: DatabaseHandle, until deadline: ContinuousClock.Instant) async throws {
    guard handle.database.access == .readWrite else { return }
    // In the mode of the rollback journal, a transaction of another connection excludes reading.
    try await LockIsTaken.retrying(until: deadline) {
      let connection = try connection(for: handle, .synchronize)
      try attempting(for: handle, .synchronize, "the database could not be examined") {
        // Another process may have committed with `buffered`.
        if try noteOthers(on: connection) { handle.database.observers.reportOthers() }
      }
    }
    try checkFiles(of: handle, for: .synchronize)
    if !isDurable { try makeDurable(handle, during: .synchronize) }
  }

  /// Flushes the log, in which all commits are that the database file may lack.
  private func makeDurable(_ handle: DatabaseHandle, during operation: StoreOperation) throws {
    let file = handle.database.file
    do throws(FileError) {
      // Without a log, this process has written nothing. SQLite takes no locks on the log, so this releases none.
      if hasLog { try POSIXFileSystem().synchronizeFile(at: file.logPath) }
      try synchronizeFolder(of: file)
      isDurable = true
    } catch {
      disconnect()
      throw StoreError(
        error, during: operation, store: handle.name, message: "the changes could not be made durable",
        outcome: .unknown)
    }
  }

  /// Flushes the names of the files.
  ///
  /// SQLite does so too, but reports no error.
  private func synchronizeFolder(of file: DatabaseFile) throws(FileError) {
    try POSIXFileSystem().synchronizeDirectory(at: FilePaths.split(file.path).directory)
    hasSyncedFolder = true
  }

  /// Flushes the writes of a handle before it is closed.
  func finish(for handle: DatabaseHandle) throws {
    // Without a connection, nothing was written, or the failure was reported.
    guard handle.database.access == .readWrite, connection != nil else { return }
    try checkFiles(of: handle, for: .close)
    if !isDurable, handle.database.durability == .buffered { try makeDurable(handle, during: .close) }
  }
}
#endif
