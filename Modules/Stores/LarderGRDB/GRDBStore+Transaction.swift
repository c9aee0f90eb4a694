#if GRDB
import GRDB
import Larder
import LarderFiles
import LarderSQLiteFormat

/// How the store changes its table inside transactions.
extension GRDBStore {
  /// Runs a closure on the connection of a caller, for which `close` waits.
  func run<Result>(_ operation: StoreOperation, _ body: () throws -> Result) throws -> Result {
    guard operations.begin() else { throw information.closedError(for: operation) }
    defer { operations.end() }
    return try body()
  }

  func rawTable(in db: Database) -> GRDBTable { GRDBTable(db: db, table: table, isUTF8: settings.isUTF8) }

  /// Writes the changes of a batch.
  ///
  /// - Throws: ``StoreError``; the errors of the connection.
  func write(
    _ encoded: EncodedChanges, in format: CodecRecord.Format, of changes: ChangeBatch<Value>,
    during operation: StoreOperation, in db: Database
  ) throws {
    try undoable(operation, in: db) {
      try confirming(operation, in: db) {
        try coder.codecRecord.checkUnchanged(since: format, during: operation, store: information.name)
        try change(BoundedChanges(changes), in: db) { try $0.write(encoded) }
        return .commit(())
      }
    }
  }

  /// Reads, changes and writes back values.
  ///
  /// - Throws: ``StoreError``; the errors of the connection.
  func updateInTransaction<Result>(
    _ keys: [StoreKey], in db: Database, deciding body: (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result {
    try undoable(.update, in: db) {
      // Before the reads, so that no value is decoded with another codec than wrote it.
      try confirming(.update, in: db) { try updateConfirmed(keys, in: db, deciding: body) }
    }
  }

  private func updateConfirmed<Result>(
    _ keys: [StoreKey], in db: Database, deciding body: (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> UpdateDecision<Result> {
    let table = rawTable(in: db)
    let stored = try keys.map { key in try table.withValue(forKey: key) { $0.map { ArraySlice($0) } } }
    let (decision, assigned, changes) = try coder.update(keys, stored: stored, deciding: body)
    guard !assigned.isEmpty else { return decision }
    try change(BoundedChanges(keys: assigned), in: db) { table in
      try changes.reduce(0) { try $0 + table.set($1.bytes, forKey: $1.key) }
    }
    return decision
  }

  /// Runs a closure in a savepoint of the transaction of the caller, or in a transaction of its own.
  ///
  /// An error, and a decision to discard, undo what the closure has changed, and nothing else. The causes of a refusal cannot
  /// all be known before: a trigger, an index or a constraint of your program, a foreign key of another table, or a trigger
  /// that a cascade reaches.
  private func undoable<Result>(
    _ operation: StoreOperation, in db: Database, _ body: () throws -> UpdateDecision<Result>
  ) throws -> Result {
    guard ObjectIdentifier(db) == writingConnection else {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name,
        message: "the connection is not the one with which the database of the store writes")
    }
    // GRDB reports the rows of a savepoint when it ends, so that the store has ended writing only afterward.
    func recorded(_ body: () throws -> UpdateDecision<Result>) throws -> UpdateDecision<Result> {
      do {
        let decision = try body()
        recorder.end(isUndone: !decision.isCommit)
        return decision
      } catch {
        recorder.end(isUndone: true)
        throw error
      }
    }
    if db.isInsideTransaction { return try recorded { try db.inStoreSavepoint(body) }.result }
    do {
      return try db.inImmediateTransaction { try recorded(body) }.result
    } catch let error as CommitFailure where error.isUnknown {
      recorder.reportUnknown()
      throw error
    }
  }

  /// Runs a closure that changes the table and returns the number of changed rows.
  private func change(
    _ changes: @autoclosure () -> BoundedChanges, in db: Database, _ body: (GRDBTable) throws -> Int
  ) throws {
    recorder.begin(changes())
    recorder.noteRows(try body(rawTable(in: db)))
    // GRDB sees no changes of a table without row numbers.
    if table.isClustered { try db.notifyChanges(in: Table(table.name)) }
  }

  /// Compares the table and its record with those of this store, unless nothing has changed since the last time, and runs
  /// a closure.
  ///
  /// The table is compared once for each transaction, in which the program may change it afterward. A statement of the store
  /// that fails then has this cause.
  private func confirming<Result>(
    _ operation: StoreOperation, in db: Database, _ body: () throws -> Result
  ) throws -> Result {
    // Once for each transaction, unlike the date, which GRDB keeps.
    func version() throws -> ContentVersion {
      try checkFiles(for: operation)
      return try db.contentVersion
    }
    let transaction = try db.transactionDate
    if try !recorder.isCompared(in: transaction, at: version) {
      let compared = try version()
      let isChanged = try compare(operation, in: db)
      recorder.noteComparison(in: transaction, at: compared, isChanged: isChanged)
    }
    do {
      return try body()
    } catch let error as DatabaseError where [.SQLITE_ERROR, .SQLITE_SCHEMA].contains(error.resultCode) {
      _ = try compare(operation, in: db)
      throw error
    }
  }

  /// Compares the table and its record with those of this store.
  ///
  /// - Returns: A Boolean value that indicates whether the record was changed.
  private func compare(_ operation: StoreOperation, in db: Database) throws -> Bool {
    try StoreCatalog(store: information.name, operation: operation).confirm(
      table, codec: coder.codecRecord, on: GRDBConnection(db: db))
  }
}
#endif
