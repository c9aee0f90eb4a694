#if SQLite
import Larder

/// A handle with which one object uses a database, until the handle is closed or deinitialized.
///
/// The table of open databases counts root handles. A dependent handle is closed together with its root.
final class DatabaseHandle: Sendable {
  let database: SharedDatabase

  /// The information of the owner, which is a store or the database itself.
  let information: StoreInformation

  /// The observers of the owner, if it is a store.
  private let observers = StoreObservers()

  private let root: DatabaseHandle?

  /// The running operations of the owner; a root also counts those of the handles that depend on it.
  private let operations = RunningOperations()

  private let state = Locked((isReleased: false, claimedTable: nil as [UInt8]?))

  /// Creates a handle.
  ///
  /// - Parameters:
  ///   - database: The database, which the table of open databases has already counted for a root handle.
  ///   - root: The handle that the new one depends on, or `nil` for a root handle.
  ///   - name: The name of the owner in error messages.
  init(of database: SharedDatabase, dependingOn root: DatabaseHandle? = nil, name: String) {
    self.database = database
    self.root = root
    information = StoreInformation(
      name: name, durability: Durability(database.durability), sharing: .betweenProcesses, access: database.access,
      maximumValueSize: database.maximumValueSize, entryLifetime: .untilRemoved, reportedCommits: .ofHost,
      readsMayBeCopies: false)
  }

  deinit {
    guard takeRelease(), root == nil else { return }
    // The last handle is the last owner of the database, which closes its connections when it is deinitialized.
    _ = DatabaseTable.release(database)
  }

  /// Opens a database, or shares it if this process already has it open.
  ///
  /// - Throws: ``StoreError``.
  static func take(_ configuration: DatabaseConfiguration) async throws -> DatabaseHandle {
    DatabaseHandle(of: try await DatabaseTable.take(configuration), name: configuration.name)
  }

  /// The name of the owner in error messages.
  var name: String { information.name }

  var isClosed: Bool { operations.isClosing || root?.isClosed ?? false }

  /// Throws `closed` if the handle is closed.
  func checkOpen(for operation: StoreOperation) throws {
    guard !isClosed else { throw information.closedError(for: operation) }
  }

  // MARK: Operations

  /// Runs an operation, for which `close` waits.
  ///
  /// - Throws: ``StoreError`` with `closed`; the error that `body` throws.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try begin(operation)
    defer { end() }
    return try await body()
  }

  /// The time after which a call that begins now does not wait any longer for the lock of another connection.
  var deadline: ContinuousClock.Instant { ContinuousClock.now + database.file.busyTimeout }

  /// Flushes all previous writes of the database to disk.
  ///
  /// - Throws: ``StoreError``; `CancellationError`.
  func synchronize() async throws {
    try await running(.synchronize) { try await database.writer.synchronize(self, until: deadline) }
  }

  /// Runs a closure with a connection that reads.
  ///
  /// - Throws: The error that `body` throws; ``StoreError`` if no connection can be opened or `body` throws an
  ///   `SQLiteError`.
  @inline(__always)
  func read<Result>(for operation: StoreOperation, _ body: (SQLiteConnection) throws -> Result) throws -> Result {
    try begin(operation)
    defer { end() }
    try database.checkNotReplaced(during: operation, store: name)
    do {
      let connection = try database.readers.take { try database.file.connect(writes: false, waits: true, store: name) }
      defer { database.readers.giveBack(connection) }
      return try body(connection)
    } catch let error as SQLiteError {
      throw StoreError(error, during: operation, store: name, message: "the read failed")
    }
  }

  private func begin(_ operation: StoreOperation) throws {
    guard root?.operations.begin() ?? true else { throw information.closedError(for: operation) }
    guard operations.begin() else {
      root?.operations.end()
      throw information.closedError(for: operation)
    }
  }

  private func end() {
    operations.end()
    root?.operations.end()
  }

  // MARK: Types and observers

  /// Notes the type of the values of the owner, a store.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if this process has the table open with another type.
  func claim(_ table: [UInt8], for type: Any.Type) throws {
    guard !TypeClaim.isUntyped(type) else { return }
    try database.claim(table, for: type, store: name)
    state.withLock { $0.claimedTable = table }
  }

  /// Observes the table of the owner.
  func observe(
    _ range: KeyRange, of table: [UInt8], _ observer: @escaping @Sendable (StoreEvent) -> Void
  ) -> StoreObservation {
    let observation = observers.add(range, observer)
    let mustPoll = database.observers.add(
      ObjectIdentifier(self), root: ObjectIdentifier(root ?? self), table, observers)
    if mustPoll { DatabaseObservers.poll(database) }
    // The database may have been closed before the list was recorded there.
    if isClosed { endObservations() }
    return observation
  }

  private func endObservations() {
    database.observers.remove(ObjectIdentifier(self))
    observers.close()
  }

  // MARK: Closing

  /// Waits for running operations, makes previous writes durable, and releases the handle.
  ///
  /// - Throws: ``StoreError`` if the writes could not be made durable. The handle is released even if an error is
  ///   thrown.
  func close() async throws {
    await operations.close()
    // A root that was closed before has made everything durable.
    guard takeRelease(), root?.isClosed != true else { return }
    var failure: (any Error)?
    do {
      try await database.writer.finish(for: self)
    } catch {
      failure = error
    }
    if root == nil, DatabaseTable.release(database) { await database.close() }
    if let failure { throw failure }
  }

  /// Ends the observations and the claim of the owner, once.
  ///
  /// - Returns: A Boolean value that indicates whether this is the first call.
  private func takeRelease() -> Bool {
    let (wasReleased, table) = state.withLock { state in
      defer { state.isReleased = true }
      return (state.isReleased, state.claimedTable)
    }
    guard !wasReleased else { return false }
    endObservations()
    if let table { database.releaseClaim(on: table) }
    return true
  }
}
#endif
