#if SQLite
import CSQLite
import Larder
import LarderFiles
import LarderSQLiteFormat

/// The writer of a database. It runs one transaction after another on its own thread, with its own connection.
actor DatabaseWriter {
  /// The number of frames in the log from which it is moved into the database file, as SQLite does by itself.
  private static let checkpointFrameCount = 1000

  /// A transaction that writes.
  struct Transaction {
    let connection: SQLiteConnection

    /// The number of times that the tables and records of stores may have changed, as far as this process knows.
    let generation: Int

    /// The changes, for observers.
    var changes: CommitRecord<String>

    /// Whether a table or a record was changed, so that other stores of this process must check theirs.
    var hasChangedCatalog = false
  }

  private nonisolated let executor = DispatchQueueExecutor(label: "Larder.SQLiteDatabase.writer")

  /// The connection, or `nil` before the first use and after a failure of the disk.
  private var connection: SQLiteConnection?

  /// The files that must be at their paths whenever something is written.
  private var openedFiles = OpenedFiles()

  /// The file that was moved, removed or replaced, after which nothing is written.
  private var mismatch: OpenedFiles.Mismatch?

  /// The number with which the connection shows commits of others.
  private var dataVersion: Int64 = 0

  /// Whether others may have committed while there was no connection.
  private var hasMissedCommits = false

  private var generation = 0

  /// Whether the database has triggers, which may change more entries than the stores know of, and the generation for
  /// which this is known.
  private var triggers = (exist: false, generation: -1)

  /// Whether the database was closed, although a poll may still come.
  private var isClosed = false

  /// Whether everything that the connection has seen is durable.
  private var isDurable = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  // MARK: Transactions

  /// Runs a closure in a transaction that writes, and commits it.
  ///
  /// - Parameters:
  ///   - handle: The handle that writes.
  ///   - operation: The operation, for errors.
  ///   - body: The closure, which also records its changes.
  /// - Throws: The error that `body` throws, with nothing changed; ``StoreError``; `CancellationError`, with nothing
  ///   changed, if the task is cancelled before `body` begins.
  func write<Result: Sendable>(
    for handle: DatabaseHandle, during operation: StoreOperation,
    _ body: @Sendable (inout Transaction) throws -> Result
  ) throws -> Result {
    try handle.information.checkWritable(for: operation)
    try Task.checkCancellation()
    return try commit(for: handle, during: operation) { transaction in
      // The task may have been cancelled while another process held the lock.
      try Task.checkCancellation()
      return try body(&transaction)
    }
  }

  private func commit<Result: Sendable>(
    for handle: DatabaseHandle, during operation: StoreOperation, _ body: (inout Transaction) throws -> Result
  ) throws -> Result {
    let connection = try connection(for: handle, operation)
    do {
      // Immediately, because a transaction that begins to write later fails if others have written in the meantime.
      try connection.withStatement("BEGIN IMMEDIATE") { _ = try $0.step() }
    } catch let error as SQLiteError {
      throw failed(error, for: handle, operation, "the transaction cannot begin; another one may hold the lock")
    }
    var transaction: Transaction
    // Whether more than the recorded changes must be reported.
    let hasOtherChanges: Bool
    let result: Result
    let commitCount = connection.logCommitCount
    do {
      let followsOthers = try noteOthers(on: connection)
      let isObserved = handle.database.observers.areObserving
      hasOtherChanges = try isObserved && haveTriggers(on: connection) || followsOthers
      transaction = Transaction(
        connection: connection, generation: generation,
        changes: CommitRecord(isRecording: isObserved))
      // Before the body, because a large transaction writes pages before it is committed.
      try checkFiles(of: handle, for: operation)
      result = try body(&transaction)
      try checkFiles(of: handle, for: operation)
    } catch {
      rollBack(connection)
      switch error {
      case let error as BodyError: throw error.error
      case let error as SQLiteError: throw failed(error, for: handle, operation, "the changes could not be written")
      default: throw error
      }
    }
    do {
      try connection.withStatement("COMMIT") { _ = try $0.step() }
    } catch let error as SQLiteError {
      rollBack(connection)
      // The log may hold the whole transaction although the disk reported an error.
      let isUnknown = error.primaryCode == SQLITE_IOERR
      if isUnknown { handle.database.observers.report(transaction.changes, followsOthers: hasOtherChanges) }
      throw failed(
        error, for: handle, operation, "the changes could not be committed",
        outcome: isUnknown ? .unknown : .nothingChanged)
    }
    if transaction.hasChangedCatalog { generation += 1 }
    // Also without changes, because commits of others are noticed once.
    handle.database.observers.report(transaction.changes, followsOthers: hasOtherChanges)
    try confirm(hasWritten: connection.logCommitCount != commitCount, for: handle, during: operation)
    // After the caller has its answer.
    if connection.logFrameCount >= DatabaseWriter.checkpointFrameCount { Task { checkpoint() } }
    return result
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

  /// Returns the store error of a failed call, and gives up the connection after a failure of the disk.
  private func failed(
    _ error: SQLiteError, for handle: DatabaseHandle, _ operation: StoreOperation, _ message: String,
    outcome: StoreError.Outcome = .nothingChanged
  ) -> StoreError {
    if error.primaryCode == SQLITE_IOERR { disconnect() }
    return StoreError(
      error, during: operation, store: handle.name, message: message, outcome: outcome, isWrite: true)
  }

  // MARK: The connection

  /// Returns the connection, which is opened at the first use.
  ///
  /// - Throws: ``StoreError``.
  private func connection(for handle: DatabaseHandle, _ operation: StoreOperation) throws -> SQLiteConnection {
    // One whose transaction could not be ended is replaced.
    if let connection, !connection.isInTransaction { return connection }
    do {
      return try connect(to: handle.database, store: handle.name)
    } catch let error as SQLiteError {
      throw StoreError(
        error, during: operation, store: handle.name, message: "the database cannot be opened", isWrite: true)
    } catch let error as FileError {
      throw StoreError(error, during: operation, store: handle.name, message: "the log cannot be examined")
    }
  }

  private func connect(to database: SharedDatabase, store: String) throws -> SQLiteConnection {
    let file = database.file
    let opened = try file.connect(writes: true, store: store)
    // A read opens the log.
    _ = try opened.integer("SELECT count(*) FROM sqlite_schema")
    dataVersion = try opened.dataVersion()
    if mismatch == nil {
      openedFiles = OpenedFiles()
      openedFiles.note(file.identity, at: file.path, as: .data)
      if let log = try POSIXFileSystem().identity(at: file.logPath) {
        openedFiles.note(log, at: file.logPath, as: .data)
      }
      if let index = try POSIXFileSystem().identity(at: file.indexPath) {
        openedFiles.note(index, at: file.indexPath, as: .lock)
      }
    }
    // Others may have committed while there was no connection.
    hasMissedCommits = generation > 0
    generation += 1
    isDurable = false
    connection = opened
    return opened
  }

  /// Closes the connection until the next use.
  private func disconnect() {
    connection = nil
  }

  /// Closes the connection permanently.
  func close() {
    isClosed = true
    disconnect()
  }

  /// Notes commits of other connections.
  ///
  /// - Returns: Whether there may have been any since the last call.
  private func noteOthers(on connection: SQLiteConnection) throws -> Bool {
    let version = try connection.dataVersion()
    guard version != dataVersion || hasMissedCommits else { return false }
    dataVersion = version
    hasMissedCommits = false
    generation += 1
    isDurable = false
    return true
  }

  /// Returns whether the database has triggers.
  private func haveTriggers(on connection: SQLiteConnection) throws -> Bool {
    if triggers.generation != generation {
      let count = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'")
      triggers = (count > 0, generation)
    }
    return triggers.exist
  }

  /// Reports commits of others to the observers.
  func reportOthers(in database: SharedDatabase) {
    guard !isClosed else { return }
    do {
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
  private func checkFiles(of handle: DatabaseHandle, for operation: StoreOperation) throws {
    do {
      if mismatch == nil { mismatch = try openedFiles.firstMismatch(in: POSIXFileSystem()) }
    } catch {
      throw StoreError(
        error, during: operation, store: handle.name, message: "the files of the database could not be checked")
    }
    guard let mismatch else { return }
    throw StoreError(
      .conflict, during: operation, store: handle.name,
      message: "\(mismatch.path) was \(mismatch.isMissing ? "moved or removed" : "replaced") while the database "
        + "was open, so writing has stopped; close all stores of the database and open it again")
  }

  /// Flushes all previous writes to disk.
  func synchronize(_ handle: DatabaseHandle) throws {
    guard handle.database.access == .readWrite else { return }
    let connection = try connection(for: handle, .synchronize)
    do {
      // Another process may have committed with `buffered`.
      if try noteOthers(on: connection) { handle.database.observers.reportOthers() }
    } catch let error as SQLiteError {
      throw failed(error, for: handle, .synchronize, "the database could not be examined")
    }
    try checkFiles(of: handle, for: .synchronize)
    if !isDurable { try makeDurable(handle, during: .synchronize) }
  }

  /// Flushes the log, in which all commits are that the database file may lack.
  private func makeDurable(_ handle: DatabaseHandle, during operation: StoreOperation) throws {
    let file = handle.database.file
    do throws(FileError) {
      // SQLite takes no locks on the log, so this releases none.
      try POSIXFileSystem().synchronizeFile(at: file.logPath)
      try POSIXFileSystem().synchronizeDirectory(at: FilePaths.split(file.path).directory)
      isDurable = true
    } catch {
      disconnect()
      throw StoreError(
        error, during: operation, store: handle.name, message: "the changes could not be made durable",
        outcome: .unknown)
    }
  }

  /// Flushes the writes of a handle before it is closed.
  func finish(for handle: DatabaseHandle) throws {
    // Without a connection, nothing was written, or the failure was reported.
    guard handle.database.access == .readWrite, connection != nil else { return }
    try checkFiles(of: handle, for: .close)
    if !isDurable, handle.database.durability == .buffered { try makeDurable(handle, during: .close) }
  }

  /// Moves commits from the log into the database file, as far as no reader needs the log.
  private func checkpoint() {
    guard let connection, mismatch == nil else { return }
    let code = sqlite3_wal_checkpoint_v2(connection.pointer, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    // The log keeps what could not be moved. After a failure of the disk, a new connection reads it again.
    if SQLiteError(code: code).primaryCode == SQLITE_IOERR { disconnect() }
  }

  // MARK: Stores

  /// Finds the table of a store.
  ///
  /// - Returns: The table and the name of the recorded codec, or `nil` if there is no such table.
  /// - Throws: ``StoreError``.
  func findTable(
    for handle: DatabaseHandle, named name: String
  ) throws -> (table: StoreTable, codecName: String?)? {
    let connection = try connection(for: handle, .open)
    do {
      return try connection.reading {
        try StoreCatalog(store: handle.name).find(name, on: connection).map { ($0.table, $0.record?.codecName) }
      }
    } catch let error as SQLiteError {
      throw StoreError(error, during: .open, store: handle.name, message: "the table of the store cannot be read")
    }
  }

  /// Creates the table and the record of a store, as far as they are missing.
  ///
  /// - Returns: The table and the name of the recorded codec.
  /// - Throws: ``StoreError``.
  func createTable(
    for handle: DatabaseHandle, _ table: StoreTable, codecName: String
  ) throws -> (table: StoreTable, codecName: String) {
    try commit(for: handle, during: .open) { transaction in
      let (table, codecName, hasWritten) = try StoreCatalog(store: handle.name).create(
        table, codecName: codecName, on: transaction.connection)
      transaction.hasChangedCatalog = hasWritten
      return (table, codecName)
    }
  }

  /// Returns the names of the stores in ascending order.
  ///
  /// - Throws: ``StoreError``.
  func storeNames(for handle: DatabaseHandle) throws -> [String] {
    let connection = try connection(for: handle, .storeNames)
    do {
      return try connection.reading {
        try StoreCatalog(store: handle.name, operation: .storeNames).storeNames(on: connection)
      }
    } catch let error as SQLiteError {
      throw StoreError(error, during: .storeNames, store: handle.name, message: "the names cannot be read")
    }
  }

  /// Rewrites the file without free pages; see `MaintainableStore/compact()`.
  func compact(_ handle: DatabaseHandle) throws {
    try handle.information.checkWritable(for: .compact)
    let connection = try connection(for: handle, .compact)
    try checkFiles(of: handle, for: .compact)
    do {
      let catalog = StoreCatalog(store: handle.name, operation: .compact)
      guard try connection.reading({ try catalog.hasOnlyStores(on: connection) }) else {
        throw StoreError(
          .unsupported, during: .compact, store: handle.name,
          message: "the database has tables that are not Larder's, whose row numbers VACUUM could change; run VACUUM "
            + "yourself if nothing depends on them")
      }
      try connection.run("VACUUM")
      isDurable = handle.database.durability == .synced
      // VACUUM writes the whole file into the log, which is emptied here.
      let code = sqlite3_wal_checkpoint_v2(connection.pointer, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
      guard code == SQLITE_OK || code & 0xFF == SQLITE_BUSY else { throw connection.latestError(code) }
    } catch let error as SQLiteError {
      throw failed(error, for: handle, .compact, "the database could not be compacted")
    }
  }
}
#endif
