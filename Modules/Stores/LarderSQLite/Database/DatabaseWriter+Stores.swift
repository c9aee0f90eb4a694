#if SQLite
import CSQLite
import Larder
import LarderFiles
import LarderSQLiteFormat

/// The tables of the stores, and maintenance.
extension DatabaseWriter {
  /// A transaction that writes.
  struct Transaction {
    let connection: SQLiteConnection

    /// The number of times that the tables and records of stores may have changed, as far as this process knows.
    let generation: Int

    /// The changes, for observers.
    var changes: CommitRecord<[UInt8]>

    /// A Boolean value that indicates whether a table or a record was changed, so other stores of this process must
    /// check theirs.
    var hasChangedCatalog = false
  }

  /// Finds the table of a store.
  ///
  /// - Returns: The table and the name of the recorded codec, or `nil` if there is no such table.
  /// - Throws: ``StoreError``; `CancellationError`.
  func findTable(
    for handle: DatabaseHandle, named name: String, until deadline: ContinuousClock.Instant
  ) async throws -> (table: StoreTable, codecName: String?)? {
    try await reading(for: handle, .open, until: deadline, "the table of the store cannot be read") {
      try StoreCatalog(store: handle.name).find(name, on: $0).map { ($0.table, $0.record?.codecName) }
    }
  }

  /// Returns the names of the stores in ascending order.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func storeNames(for handle: DatabaseHandle, until deadline: ContinuousClock.Instant) async throws -> [String] {
    try await reading(for: handle, .storeNames, until: deadline, "the names cannot be read") {
      try StoreCatalog(store: handle.name, operation: .storeNames).storeNames(on: $0)
    }
  }

  /// Runs a closure in a transaction that only reads.
  private func reading<Result>(
    for handle: DatabaseHandle, _ operation: StoreOperation, until deadline: ContinuousClock.Instant,
    _ message: String, _ body: (SQLiteConnection) throws -> Result
  ) async throws -> Result {
    try await LockIsTaken.retrying(until: deadline) {
      let connection = try connection(for: handle, operation)
      return try attempting(for: handle, operation, message, isWrite: false) {
        try connection.reading { try body(connection) }
      }
    }
  }

  /// Creates the table and the record of a store, as far as they are missing.
  ///
  /// - Returns: The table and the name of the recorded codec.
  /// - Throws: ``StoreError``; `CancellationError`.
  func createTable(
    for handle: DatabaseHandle, _ table: StoreTable, codecName: String, until deadline: ContinuousClock.Instant
  ) async throws -> (table: StoreTable, codecName: String) {
    try await write(for: handle, during: .open, until: deadline) { transaction in
      let (table, codecName, hasWritten) = try StoreCatalog(store: handle.name).create(
        table, codecName: codecName, on: transaction.connection)
      transaction.hasChangedCatalog = hasWritten
      return .commit((table, codecName))
    }
  }

  /// Removes the table, the view and the record of a store; see ``SQLiteDatabase/removeStore(_:)``.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func removeTable(
    for handle: DatabaseHandle, named name: String, until deadline: ContinuousClock.Instant
  ) async throws {
    try await write(for: handle, during: .removeStore, until: deadline) { transaction in
      let table = try StoreCatalog(store: handle.name, operation: .removeStore).remove(
        name, on: transaction.connection)
      transaction.hasChangedCatalog = true
      transaction.changes.append(.range(.all), in: table.identifier, hasWritten: true)
      return .commit(())
    }
  }

  // MARK: Maintenance

  /// Rewrites the file without free pages; see `MaintainableStore/compact()`.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func compact(_ handle: DatabaseHandle, until deadline: ContinuousClock.Instant) async throws {
    try handle.information.checkWritable(for: .compact)
    try await LockIsTaken.retrying(until: deadline) {
      let connection = try connection(for: handle, .compact)
      try checkFiles(of: handle, for: .compact)
      try attempting(for: handle, .compact, "the database could not be compacted") {
        let catalog = StoreCatalog(store: handle.name, operation: .compact)
        try connection.reading { try catalog.checkCompactable(on: connection) }
        try connection.run("VACUUM")
        isDurable = handle.database.durability == .synced
        // VACUUM writes the whole file into the log, which is emptied here. If a reader needs it, it shrinks to its limit
        // after a later checkpoint.
        if hasLog, let error = connection.moveLog(SQLITE_CHECKPOINT_TRUNCATE), !error.isBusy { throw error }
      }
    }
  }

  /// Moves all commits from the log into the database file and empties the log; see ``SQLiteDatabase/checkpoint()``.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func checkpoint(_ handle: DatabaseHandle, until deadline: ContinuousClock.Instant) async throws {
    try handle.information.checkWritable(for: .checkpoint)
    try await LockIsTaken.retrying(until: deadline) {
      let connection = try connection(for: handle, .checkpoint)
      guard hasLog else { return }
      try checkFiles(of: handle, for: .checkpoint)
      try attempting(for: handle, .checkpoint, "the log cannot be emptied; a reader or another process may need it") {
        if let error = connection.moveLog(SQLITE_CHECKPOINT_TRUNCATE) { throw error }
      }
    }
  }

  /// Moves commits from the log into the database file, as far as no reader needs the log.
  ///
  /// - Returns: A Boolean value that indicates whether there was no error.
  @discardableResult
  func moveLog() -> Bool {
    guard let connection, hasLog, mismatch == nil else { return false }
    guard let error = connection.moveLog(SQLITE_CHECKPOINT_PASSIVE) else { return true }
    // The log keeps what could not be moved. After a failure of the disk, a new connection reads it again.
    if error.primaryCode == SQLITE_IOERR { disconnect() }
    return false
  }
}
#endif
