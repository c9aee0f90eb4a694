#if GRDB
public import GRDB
public import Larder
import LarderFiles
import LarderSQLiteFormat

/// A store in a table of a database that your program already has open with GRDB, beside your program's own tables.
///
/// ```swift
/// let pool = try DatabasePool(path: "app.sqlite")
/// let users = try await GRDBStore<User>(in: pool, name: "users")
/// try await users.setValue(user, forKey: "user:7")
/// ```
///
/// Besides the methods of `DataStore`, it has methods that take a `Database`. They work inside your program's own
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
  /// The name of a store that is opened without a name.
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

  let settings: GRDBSettings
  let operations = RunningOperations()
  private let claim: GRDBClaim

  /// The database file, to detect that another one takes its place.
  private let openedFiles: OpenedFiles

  /// The connection that writes, to detect that a method gets another one.
  let writingConnection: ObjectIdentifier

  /// Opens a store, whose table is created if it is missing.
  ///
  /// ```swift
  /// let queue = try DatabaseQueue(path: "app.sqlite")
  /// let users = try await GRDBStore(in: queue, name: "users", codec: .json(User.self))
  /// ```
  ///
  /// - Parameters:
  ///   - writer: The database, a `DatabasePool` or a `DatabaseQueue`.
  ///   - name: The name of the store. It is that of its table. Defaults to `default`.
  ///   - codec: The codec of the values. If it writes JSON, the values of a new table are text.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the table if it is missing. Defaults to
  ///     `true`.
  ///   - requiresSynced: A Boolean value that indicates whether to refuse a database whose commits may be lost when
  ///     power is lost. Defaults to `false`.
  /// - Throws: `StoreError`: `invalidArgument` if the name is reserved, differs from an existing one only in case or in the
  ///   composition of its letters, or if this process has the store open with another type; `unsupported` if the name
  ///   belongs to a table that is not a store's, if the codec does not suit the table, or if `requiresSynced` is not met;
  ///   `versionMismatch` if the store has another codec or a newer format; `notFound`; `timedOut`; `notPermitted`; `full`;
  ///   `ioFailed`.
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
    let coder = ValueCoder(codec: codec, store: fullName, maximumSize: GRDBSettings.maximumValueSize)
    let opened: OpenedTable
    do {
      opened = try await writer.writeWithoutTransaction { db in
        let opened = try OpenedTable(
          name, codec, coder.codecRecord, mayCreate: createsIfMissing && !isReadOnly, isReadOnly: isReadOnly,
          requiresSynced: requiresSynced, on: db, store: fullName)
        // The database holds it weakly, so it ends together with the store.
        db.add(transactionObserver: recorder, extent: .observerLifetime)
        return opened
      }
    } catch {
      throw StoreError.replacing(error, during: .open, store: fullName, "the table of the store cannot be opened")
    }
    settings = opened.settings
    var information = StoreInformation(
      name: fullName, durability: settings.durability,
      // Only this process sees a database in memory.
      sharing: settings.isInMemory ? .exclusive : .betweenProcesses, access: isReadOnly ? .readOnly : .readWrite,
      maximumValueSize: GRDBSettings.maximumValueSize, entryLifetime: .untilRemoved, reportedCommits: .ofObject,
      identity: StoreIdentity(), readsMayBeCopies: false)
    information.noteEncryption(by: codec)
    self.information = information
    self.writer = writer
    self.recorder = recorder
    table = opened.table
    openedFiles = opened.files
    writingConnection = opened.connection
    self.coder = coder
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if the value cannot be decoded; `conflict` if the
  ///   table was removed, or the file moved or replaced; `closed`; `timedOut`; `ioFailed`. `CancellationError` if the task
  ///   is cancelled.
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
  /// - Throws: `StoreError`: `conflict`; `closed`; `timedOut`; `ioFailed`. `CancellationError` if the task is cancelled.
  public func count(in range: KeyRange) async throws -> Int {
    try await read(.count) { [self] db in try rawTable(in: db).count(in: range) }
  }

  /// Runs a closure on a connection that reads, for which `close` waits.
  func read<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try await running(operation) { [self] in
      do {
        return try await writer.read { [self] db in
          try checkFiles(for: operation)
          return try body(db)
        }
      } catch {
        // A connection for reading, which GRDB opens when it needs one, may have found nothing or another file.
        if error is DatabaseError { try checkFiles(for: operation) }
        throw StoreError.replacing(error, during: operation, store: information.name, "the read failed")
      }
    }
  }

  // MARK: Writing

  /// Applies a batch of changes in a transaction of its own; see `DataStore.apply(_:)`.
  ///
  /// The method throws `timedOut` if another process holds the lock, after the time that the `busyMode` of the database
  /// sets, which is no time by default; `notPermitted` if a trigger, an index or a constraint in the database refuses a
  /// change, or if a trigger ignores it; `conflict` if the table was removed or changed, or the file moved or replaced; and
  /// `versionMismatch` if a newer program has recorded another codec since the store was opened.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await running(.apply) {
      try information.checkWritable(for: .apply)
      guard !changes.isEmpty else { return }
      let format = coder.codecRecord.format
      let encoded = try await coder.encoded(changes, for: information, during: .apply)
      try await write(.apply) { [self] db in try write(encoded, in: format, of: changes, during: .apply, in: db) }
    }
  }

  /// Reads, changes and writes back the values of several keys in a transaction of its own; see
  /// `DataStore.update(deciding:_:)`.
  ///
  /// `body` runs on the thread of the database's writer, inside the transaction, so other writes wait for it.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await running(.update) {
      try information.check(updateOf: keys)
      return try await write(.update) { [self] db in try updateInTransaction(keys, in: db, deciding: body) }
    }
  }

  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await operations.run(operation, of: information, body)
  }

  /// Runs a closure on the connection that writes.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before the closure begins; ``StoreError``.
  private func write<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try Task.checkCancellation()
    let start = WriteStart()
    // In a task of its own, because GRDB would interrupt a write that has begun when the task is cancelled.
    let task = Task { [writer] in
      try await writer.writeWithoutTransaction { db in
        try start.begin()
        return try body(db)
      }
    }
    do {
      return try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        start.cancel()
      }
    } catch {
      throw StoreError.replacing(
        error, during: operation, store: information.name, "the changes could not be written", isWrite: true)
    }
  }

  /// Syncs all commits to disk, so they survive power loss.
  ///
  /// If ``information`` says `synced`, every commit through this database is durable when it returns, and nothing is done.
  ///
  /// - Throws: `StoreError`: `unsupported` if the database was opened with `synchronous = OFF` or with a journal in
  ///   memory; `conflict` if the file was moved or replaced; `closed`; `ioFailed`.
  public func synchronize() async throws {
    try await running(.synchronize) { try await synchronizeFiles(during: .synchronize) }
  }

  private func synchronizeFiles(during operation: StoreOperation) async throws {
    guard information.durability == .buffered, information.access == .readWrite else { return }
    let (settings, name) = (settings, information.name)
    try await DispatchQueueExecutor(label: "Larder.GRDBStore.synchronizing").run { [self] in
      try checkFiles(for: operation)
      try settings.synchronize(during: operation, store: name)
    }
  }

  /// Waits for running operations, syncs previous writes to disk, and closes the store.
  ///
  /// The database stays open. Methods that take a `Database` throw `closed` too.
  ///
  /// - Throws: `StoreError` with `ioFailed` if previous writes could not be made durable, and with `conflict` if the file
  ///   was moved or replaced. The store is closed even if an error is thrown. There is no error if the settings of the
  ///   database rule out durable commits.
  public func close() async throws {
    await operations.close()
    guard claim.release() else { return }
    recorder.observers.close()
    guard settings.canSynchronize else { return }
    try await synchronizeFiles(during: .close)
  }

  /// Throws an error if the database file is no longer at its path.
  ///
  /// It only reads the status of the file. Opening and closing it would release SQLite's locks.
  ///
  /// - Throws: ``StoreError``: `conflict`; `ioFailed`.
  func checkFiles(for operation: StoreOperation) throws {
    let mismatch: OpenedFiles.Mismatch?
    do {
      mismatch = try openedFiles.firstMismatch(in: POSIXFileSystem())
    } catch {
      throw StoreError(
        error, during: operation, store: information.name, message: "the file of the database could not be checked")
    }
    guard let mismatch else { return }
    throw StoreError(
      .conflict, during: operation, store: information.name,
      message: "\(mismatch) while the database was open; close the database and open it again")
  }
}

/// The start of a write that waits for the connection: it begins or is cancelled, by the event that comes first.
private final class WriteStart: Sendable {
  private enum State {
    case waiting
    case begun
    case cancelled
  }

  private let state = Locked(State.waiting)

  /// Notes that the write begins.
  ///
  /// - Throws: `CancellationError` if it was cancelled.
  func begin() throws {
    let isCancelled = state.withLock { state in
      if state == .waiting { state = .begun }
      return state == .cancelled
    }
    if isCancelled { throw CancellationError() }
  }

  /// Notes that the write was cancelled.
  ///
  /// Once it has begun, this is a no-op.
  func cancel() {
    state.withLock { if $0 == .waiting { $0 = .cancelled } }
  }
}

/// Every commit through the database of the store is reported, with its keys if the store wrote them. A commit in which a
/// statement of your program, a trigger or a cascade could change the table is reported as a change of all keys. Commits of
/// other processes are not reported, and a database that was opened for reading only reports nothing, as in GRDB.
extension GRDBStore: ObservableStore {
  /// Observes a range; see `ObservableStore`.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    recorder.observers.add(range, observer)
  }
}
#endif
