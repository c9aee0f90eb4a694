#if GRDB
public import GRDB
public import Larder
import LarderCBOR
import LarderFiles
import LarderSQLiteFormat
import Synchronization

/// A store in a table of a database that the program already has open with GRDB, beside the program's own tables.
///
/// ```swift
/// let pool = try DatabasePool(path: "app.sqlite")
/// let users = try await GRDBStore<User>(in: pool, name: "users")
/// try await users.setValue(user, forKey: "user:7")
/// ```
///
/// Besides the methods of `DataStore`, it has methods that take a `Database`. They work inside the program's own
/// transactions and observations:
///
/// ```swift
/// try await pool.write { db in
///   try order.insert(db)
///   try users.setValue(user, forKey: "user:7", in: db)
/// }
/// ```
///
/// The table and its record are those of `SQLiteStore`, so each of the two opens the other's files. They are never to
/// have one file open in the same process, unless both use the same copy of the SQLite library; see <doc:UsingGRDBStore>.
///
/// The store uses only GRDB's own methods, so it works with every build of GRDB. Closing the store leaves the database
/// open.
public final class GRDBStore<Value: Sendable>: DataStore {
  /// The name of a store that is given none.
  public static var defaultName: String { "default" }

  /// The information about the store; see `DataStore.information`.
  ///
  /// The durability is the one that the database had when the store was opened. It is `buffered` for a `DatabasePool`
  /// that was not configured otherwise; see <doc:UsingGRDBStore>.
  public let information: StoreInformation

  let writer: any DatabaseWriter
  let table: StoreTable
  let coder: ValueCoder<Value>
  let recorder: GRDBRecorder

  private let codecName: String
  private let adoptedNames: [String]
  let settings: GRDBSettings
  private let operations = RunningOperations()
  private let claim: GRDBClaim

  /// The connection that writes, to detect that a method gets another one.
  private let writingConnection: ObjectIdentifier

  /// Opens a store, whose table is created if it is missing.
  ///
  /// - Parameters:
  ///   - writer: The database, a `DatabasePool` or a `DatabaseQueue`.
  ///   - name: The name of the store, which is that of its table. Defaults to `default`.
  ///   - codec: The codec that encodes and decodes values. If it writes JSON, the values of a new table are text.
  ///   - createsIfMissing: Whether to create the table if it is missing. Defaults to `true`.
  ///   - requiresSynced: Whether to refuse a database whose commits may be lost when power is lost. Defaults to `false`.
  /// - Throws: `StoreError`: `invalidArgument` if the name is reserved, differs from an existing one only in case, or if
  ///   this process has the store open with another type; `unsupported` if the name belongs to a table that is not a
  ///   store's, if the codec does not suit the table, or if `requiresSynced` is not met; `versionMismatch` if the store
  ///   has another codec or a newer format; `notFound`; `timedOut`; `notPermitted`; `full`; `ioFailed`.
  public init(
    in writer: some DatabaseWriter, name: String = GRDBStore.defaultName, codec: some Codec<Value>,
    createsIfMissing: Bool = true, requiresSynced: Bool = false
  ) async throws {
    let file = FilePaths.split(writer.path).name
    let fullName = name == GRDBStore.defaultName ? file : "\(file)#\(name)"
    let isReadOnly = writer.configuration.readonly
    if let problem = StoreTable.problem(withName: name) {
      throw StoreError(.invalidArgument, during: .open, store: fullName, message: problem)
    }
    claim = try GRDBClaim(of: name, in: writer, for: Value.self, store: fullName)
    let recorder = GRDBRecorder(tableName: name)
    let opened: Opened
    do {
      opened = try await writer.writeWithoutTransaction { db in
        let opened = try GRDBStore.open(
          name, codec, mayCreate: createsIfMissing && !isReadOnly, isReadOnly: isReadOnly,
          requiresSynced: requiresSynced, on: db, store: fullName)
        // The database holds it weakly, so it ends together with the store.
        db.add(transactionObserver: recorder, extent: .observerLifetime)
        return opened
      }
    } catch {
      throw StoreError.replacing(error, during: .open, store: fullName, "the table of the store cannot be opened")
    }
    settings = opened.settings
    information = StoreInformation(
      name: fullName, durability: settings.durability,
      sharing: .betweenProcesses, access: isReadOnly ? .readOnly : .readWrite,
      maximumValueSize: GRDBSettings.maximumValueSize)
    self.writer = writer
    self.recorder = recorder
    table = opened.table
    writingConnection = opened.connection
    coder = ValueCoder(codec: codec, store: fullName, maximumSize: GRDBSettings.maximumValueSize)
    codecName = codec.name
    adoptedNames = codec.adoptedNames
  }

  /// The results of opening on the connection that writes.
  private struct Opened: Sendable {
    var table: StoreTable
    var settings: GRDBSettings
    var connection: ObjectIdentifier
  }

  private static func open(
    _ name: String, _ codec: some Codec, mayCreate: Bool, isReadOnly: Bool, requiresSynced: Bool, on db: Database,
    store: String
  ) throws -> Opened {
    try db.checkSQLiteVersion(store: store)
    let connection = GRDBConnection(db: db)
    let catalog = StoreCatalog(store: store)
    let settings = try GRDBSettings(of: connection)
    guard !requiresSynced || settings.durability == .synced else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the connection that writes has the journal mode \(settings.journalMode) and synchronous = "
          + "\(settings.synchronous), so power loss may lose its latest commits; set PRAGMA synchronous = FULL or EXTRA on "
          + "it, and on Apple systems PRAGMA fullfsync = ON")
    }
    func finish(_ table: StoreTable, _ recordedName: String?) throws -> Opened {
      try catalog.check(table, suits: codec)
      if let recordedName { try codec.check(recordedName: recordedName, store: store) }
      return Opened(table: table, settings: settings, connection: ObjectIdentifier(db))
    }
    let found = try db.inSnapshot { try catalog.find(name, on: connection) }
    if let found, isReadOnly || found.record != nil { return try finish(found.table, found.record?.codecName) }
    guard found != nil || mayCreate else {
      throw StoreError(.notFound, during: .open, store: store, message: "the database has no store of this name")
    }
    let new = found?.table ?? StoreTable(name: name, codec: codec)
    // A table that the codec cannot use gets no record.
    try catalog.check(new, suits: codec)
    return try db.inImmediateTransaction {
      let created = try catalog.create(new, codecName: codec.name, on: connection)
      return try finish(created.table, created.codecName)
    }
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if the value cannot be decoded; `closed`;
  ///   `timedOut`; `ioFailed`. `CancellationError` if the task is cancelled.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try information.check(key, for: .value)
    return try await read(.value) { [self] db in try storedValue(forKey: key, in: db) }
  }

  /// Returns the values of several keys from one consistent snapshot.
  ///
  /// - Throws: As ``value(forKey:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await read(.values) { [self] db in try storedValues(forKeys: keys, in: db) }
  }

  /// Returns the first entries of a range from one consistent snapshot.
  ///
  /// - Throws: As ``value(forKey:)``; `StoreError` with `invalidArgument` if the limit is negative.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await read(.entries) { [self] db in try storedEntries(in: range, limit: limit, order: order, in: db) }
  }

  /// Returns the first keys of a range from one consistent snapshot.
  ///
  /// - Throws: As ``value(forKey:)``; `StoreError` with `invalidArgument` if the limit is negative.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try await read(.keys) { [self] db in try storedKeys(in: range, limit: limit, order: order, in: db) }
  }

  /// Returns the number of entries in a range.
  ///
  /// SQLite counts the keys one by one, without reading values.
  ///
  /// - Throws: `StoreError`: `closed`; `timedOut`; `ioFailed`. `CancellationError` if the task is cancelled.
  public func count(in range: KeyRange) async throws -> Int {
    try await read(.count) { [self] db in try rawTable(in: db).count(in: range) }
  }

  /// Runs a closure on a connection that reads, for which `close` waits.
  func read<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try await run(operation) { [writer] in
      do {
        return try await writer.read(body)
      } catch {
        throw StoreError.replacing(error, during: operation, store: information.name, "the read failed")
      }
    }
  }

  // MARK: Writing

  /// Applies a batch of changes in a transaction of its own; see `DataStore.apply(_:)`.
  ///
  /// The method throws `timedOut` if another process holds the lock, after the time that the `busyMode` of the database
  /// sets, which is no time by default; `notPermitted` if a trigger or an index in the database refuses a change;
  /// `conflict` if the table was removed or changed; and `versionMismatch` if a newer program has recorded
  /// another codec since the store was opened.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await run(.apply) {
      try information.checkWritable(for: .apply)
      guard !changes.isEmpty else { return }
      let encoded = try await BulkWork.run(atMost: changes.count) { [self] allowance in
        try EncodedChanges(changes) { key in
          try information.check(key, for: .apply)
        } encode: { value, key, bytes in
          _ = try allowance.encode {
            let start = bytes.count
            try coder.append(value, forKey: key, to: &bytes, during: .apply)
            return start..<bytes.count
          }
        }
      }
      try await write(.apply) { [self] db in try write(encoded, of: changes, during: .apply, in: db) }
    }
  }

  /// Reads, changes and writes back the values of several keys in a transaction of its own; see
  /// `DataStore.update(_:_:)`.
  ///
  /// `body` runs on the thread of the database's writer, inside the transaction, so other writes wait for it.
  public func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await run(.update) {
      try information.checkWritable(for: .update)
      try information.check(updateOf: keys)
      return try await write(.update) { [self] db in try updateInTransaction(keys, in: db, body) }
    }
  }

  func run<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await operations.run(operation, of: information, body)
  }

  /// Runs a closure on the connection that writes.
  private func write<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try Task.checkCancellation()
    do {
      // In a task of its own, because GRDB would interrupt a write that has begun when the task is cancelled.
      return try await Task { [writer] in try await writer.writeWithoutTransaction(body) }.value
    } catch {
      throw StoreError.replacing(
        error, during: operation, store: information.name, "the changes could not be written", isWrite: true)
    }
  }

  /// Syncs all commits to disk, so that they survive power loss.
  ///
  /// If ``information`` says `synced`, every commit through this database is durable when it returns, and nothing is done.
  ///
  /// - Throws: `StoreError`: `unsupported` if the database was opened with `synchronous = OFF` or with a journal in
  ///   memory; `closed`; `ioFailed`.
  public func synchronize() async throws {
    try await run(.synchronize) { try await synchronizeFiles(during: .synchronize) }
  }

  private func synchronizeFiles(during operation: StoreOperation) async throws {
    guard information.durability == .buffered, information.access == .readWrite else { return }
    let (settings, name) = (settings, information.name)
    try await DispatchQueueExecutor(label: "Larder.GRDBStore.synchronizing").run {
      try settings.synchronize(during: operation, store: name)
    }
  }

  /// Waits for running operations, syncs previous writes to disk, and closes the store.
  ///
  /// The database stays open. Methods that take a `Database` throw `closed` too.
  ///
  /// - Throws: `StoreError` with `ioFailed` if previous writes could not be made durable. The store is closed even if an
  ///   error is thrown. There is no error if the settings of the database rule out durable commits.
  public func close() async throws {
    await operations.close()
    guard claim.release() else { return }
    recorder.observers.close()
    guard settings.canSynchronize else { return }
    try await synchronizeFiles(during: .close)
  }

  // MARK: Inside transactions

  /// Runs a closure on the connection of a caller, for which `close` waits.
  func run<Result>(_ operation: StoreOperation, _ body: () throws -> Result) throws -> Result {
    guard operations.begin() else { throw information.closedError(for: operation) }
    defer { operations.end() }
    return try body()
  }

  func rawTable(in db: Database) -> GRDBTable { GRDBTable(db: db, table: table, isUTF8: settings.isUTF8) }

  /// Runs a closure that changes the table, inside the transaction of the caller or in one of its own.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - db: The connection.
  ///   - changes: The changes, for observers.
  ///   - isSingle: Whether the closure runs one statement.
  ///   - isUndone: Whether the caller undoes everything after an error. Defaults to `false`.
  ///   - body: The closure, which returns the number of changed rows.
  func change(
    _ operation: StoreOperation, in db: Database, _ changes: @autoclosure () -> BoundedChanges, isSingle: Bool,
    isUndone: Bool = false, _ body: (GRDBTable) throws -> Int
  ) throws {
    guard db.isInsideTransaction else {
      return try transaction(operation, in: db) {
        try change(operation, in: db, changes(), isSingle: isSingle, isUndone: true, body)
      }
    }
    let canRefuseRows = try confirm(operation, in: db)
    recorder.begin(changes())
    defer { recorder.end() }
    func run() throws -> Int {
      let rowCount = try body(rawTable(in: db))
      // GRDB sees no changes of a table without row numbers.
      if table.isClustered { try db.notifyChanges(in: Table(table.name)) }
      return rowCount
    }
    if isUndone || (isSingle && !canRefuseRows) {
      recorder.verify(rowCount: try run())
    } else if canRefuseRows {
      var rowCount = 0
      try db.inSavepoint {
        rowCount = try run()
        return .commit
      }
      // Only now, because GRDB reports the rows when the savepoint ends.
      recorder.verify(rowCount: rowCount)
    } else {
      do {
        recorder.verify(rowCount: try run())
      } catch {
        // Nothing refuses rows, so the disk or the memory is exhausted, and SQLite advises to roll back. A savepoint for
        // each batch would cost a third of its time. The first error matters more than a failure to end the transaction.
        if db.isInsideTransaction { try? db.rollback() }
        throw error
      }
    }
  }

  /// Runs a closure in a transaction of the store.
  func transaction<Result>(
    _ operation: StoreOperation, in db: Database, _ body: () throws -> Result
  ) throws -> Result {
    try checkConnection(db, for: operation)
    do {
      return try db.inImmediateTransaction(body)
    } catch let error as CommitFailure where error.isUnknown {
      recorder.reportUnknown()
      throw error
    }
  }

  private func checkConnection(_ db: Database, for operation: StoreOperation) throws {
    guard ObjectIdentifier(db) == writingConnection else {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name,
        message: "the connection is not the one with which the database of the store writes")
    }
  }

  /// Compares the table and its record with those of this store, unless nothing has changed since the last time.
  ///
  /// - Returns: Whether a trigger, an index or a constraint can refuse a row.
  @discardableResult
  func confirm(_ operation: StoreOperation, in db: Database) throws -> Bool {
    try checkConnection(db, for: operation)
    let version = try db.contentVersion
    if let confirmation = recorder.confirmation(at: version) { return confirmation.canRefuseRows }
    let (catalog, connection) = (StoreCatalog(store: information.name, operation: operation), GRDBConnection(db: db))
    let isChanged = try catalog.confirm(table, codecName: codecName, adoptedNames: adoptedNames, on: connection)
    let canRefuseRows = try catalog.canRefuseRows(of: table, on: connection)
    recorder.confirm(GRDBRecorder.Confirmation(version: version, canRefuseRows: canRefuseRows), isChanged: isChanged)
    return canRefuseRows
  }

  func write(
    _ encoded: EncodedChanges, of changes: ChangeBatch<Value>, during operation: StoreOperation, in db: Database
  ) throws {
    try change(operation, in: db, BoundedChanges(changes), isSingle: changes.count == 1) {
      try $0.write(encoded)
    }
  }
}

/// The type of the values with which a store of this process has a table open, until it is released.
final class GRDBClaim: Sendable {
  private struct Table: Hashable {
    let writer: ObjectIdentifier
    let name: String
  }

  private static let claims = Locked<[Table: TypeClaim]>([:])

  private let table: Table
  private let isUntyped: Bool
  private let isReleased = Atomic(false)

  /// Claims a table of a database, which must not be deinitialized before the claim.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if this process has it open with another type.
  init(of name: String, in writer: some DatabaseWriter, for type: Any.Type, store: String) throws {
    let table = Table(writer: ObjectIdentifier(writer), name: StoreTable.folded(name))
    isUntyped = TypeClaim.isUntyped(type)
    if !isUntyped {
      try GRDBClaim.claims.withLock { try $0[table, default: TypeClaim()].claim(for: type, store: store) }
    }
    // Last, because an error in a complete object would release the claim of another.
    self.table = table
  }

  deinit {
    release()
  }

  /// Releases the claim.
  ///
  /// - Returns: Whether this is the first call.
  @discardableResult func release() -> Bool {
    guard !isReleased.exchange(true, ordering: .relaxed) else { return false }
    guard !isUntyped else { return true }
    GRDBClaim.claims.withLock { claims in
      claims[table]?.release()
      if claims[table]?.isFree == true { claims[table] = nil }
    }
    return true
  }
}

extension GRDBStore where Value: Codable {
  /// Opens a store of `Codable` values with `CBORCodec`.
  ///
  /// - Parameters:
  ///   - writer: The database, a `DatabasePool` or a `DatabaseQueue`.
  ///   - name: The name of the store, which is that of its table. Defaults to `default`.
  ///   - createsIfMissing: Whether to create the table if it is missing. Defaults to `true`.
  ///   - requiresSynced: Whether to refuse a database whose commits may be lost when power is lost. Defaults to `false`.
  /// - Throws: The same errors as ``init(in:name:codec:createsIfMissing:requiresSynced:)``.
  public convenience init(
    in writer: some DatabaseWriter, name: String = GRDBStore.defaultName, createsIfMissing: Bool = true,
    requiresSynced: Bool = false
  ) async throws {
    try await self.init(
      in: writer, name: name, codec: CBORCodec(), createsIfMissing: createsIfMissing, requiresSynced: requiresSynced)
  }
}

extension GRDBStore: CustomStringConvertible {
  /// The type and the name of the store.
  public var description: String { "GRDBStore(\(information.name))" }
}

/// Every commit through the database of the store is reported, with its keys if the store wrote them. SQL statements of the
/// program, and triggers, are reported as changes of all keys, except in a clustered table, which `SQLiteStore` can create
/// and whose rows SQLite does not report. Commits of other processes are not reported, and a database that was opened for
/// reading only reports nothing, as in GRDB.
extension GRDBStore: ObservableStore {
  /// Observes a range; see `ObservableStore`.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    recorder.observers.add(range, observer)
  }
}
#endif
