#if LMDB
import CLMDB
import Larder
import LarderFiles
import Synchronization

/// A handle with which one object uses an environment, until the handle is closed or deinitialized.
///
/// The environment table counts root handles. A dependent handle is closed together with its root.
final class EnvironmentHandle: Sendable {
  let environment: SharedEnvironment

  /// The information of the owner, which is a store or the environment itself.
  let information: StoreInformation

  /// The time that a call waits for its turn to write, or `nil` for no limit.
  let busyTimeout: Duration?

  /// The observers of the owner, if it is a store.
  private let observers = StoreObservers()

  private let root: EnvironmentHandle?
  private let closed = Atomic<Bool>(false)
  private let state = Locked((isReleased: false, database: nil as StoreKey?, isClaimed: false))

  /// Creates a handle.
  ///
  /// - Parameters:
  ///   - environment: The environment, which the environment table has already counted for a root handle.
  ///   - root: The handle that the new one depends on, or `nil` for a root handle.
  ///   - name: The name of the owner in error messages.
  ///   - busyTimeout: The time that a call waits for its turn to write. Defaults to that of `root`, or to no limit.
  init(
    of environment: SharedEnvironment, dependingOn root: EnvironmentHandle? = nil, name: String,
    busyTimeout: Duration? = nil
  ) {
    self.environment = environment
    self.root = root
    self.busyTimeout = busyTimeout ?? root?.busyTimeout
    information = StoreInformation(
      name: name, durability: Durability(environment.durability), sharing: .betweenProcesses,
      access: environment.access, maximumValueSize: SharedEnvironment.maximumValueSize,
      entryLifetime: .untilRemoved, reportedCommits: .ofHost, readsMayBeCopies: false)
  }

  deinit {
    release()
  }

  /// The name of the owner in error messages.
  var name: String { information.name }

  var isClosed: Bool {
    closed.load(ordering: .acquiring) || root?.isClosed ?? false
  }

  /// Throws `closed` if the handle is closed.
  func checkOpen(for operation: StoreOperation) throws {
    guard !isClosed else { throw information.closedError(for: operation) }
  }

  /// Retains the named database that the owner, a store, has open, until the handle is released.
  func retainDatabase(named name: StoreKey, _ identifier: MDB_dbi) {
    environment.retainDatabase(named: name, identifier)
    state.withLock { $0.database = name }
  }

  /// Notes the type of the values of the owner, a store that has retained its named database.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if this process has the database open with another type.
  func claimDatabase(for type: Any.Type) throws {
    guard let database = state.withLock({ $0.database }), !TypeClaim.isUntyped(type) else { return }
    try environment.claimDatabase(named: database, for: type, store: name)
    state.withLock { $0.isClaimed = true }
  }

  /// Runs a closure in a read transaction.
  ///
  /// - Parameter isBackup: A Boolean value that indicates whether the read is a backup. It may take long and uses no
  ///   named database.
  /// - Throws: The error that `body` throws; ``StoreError`` if the transaction cannot begin or `body` throws an
  ///   `LMDBError`.
  @inline(__always)
  func read<Result>(
    for operation: StoreOperation, isBackup: Bool = false, _ body: (OpaquePointer) throws -> Result
  ) throws -> Result {
    let reader = try beginRead(for: operation, isBackup: isBackup)
    defer { environment.readers.end(reader) }
    // A backup saves what is left of a file that was replaced.
    if environment.access == .readOnly, !isBackup {
      try environment.dataFileCheck.check(reader.transaction.pointer, during: operation, store: name)
    }
    do {
      return try body(reader.transaction.pointer)
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: name, message: "the read failed")
    }
  }

  private func beginRead(for operation: StoreOperation, isBackup: Bool) throws -> ReaderPool.Reader {
    let read = ActiveRead(
      handle: ObjectIdentifier(self), root: ObjectIdentifier(root ?? self), isBackup: isBackup)
    let reader: ReaderPool.Reader
    do {
      reader = try environment.begin(read)
    } catch {
      try checkOpen(for: operation)
      throw StoreError(error, during: operation, store: name, message: "the read transaction cannot begin")
    }
    // Checked after the read is registered: closing the handle waits for all registered reads.
    guard isClosed else { return reader }
    environment.readers.end(reader)
    throw information.closedError(for: operation)
  }

  /// Observes the named database of the owner.
  func observe(
    _ range: KeyRange, of identifier: MDB_dbi, _ observer: @escaping @Sendable (StoreEvent) -> Void
  ) -> StoreObservation {
    let observation = observers.add(range, observer)
    // If no read can begin, all entries are reported as changed once more than necessary.
    let latest = (try? read(for: .observe) { mdb_txn_id($0) }) ?? 0
    let mustPoll = environment.observers.add(
      ObjectIdentifier(self), root: ObjectIdentifier(root ?? self), identifier, observers, since: latest)
    if mustPoll { EnvironmentObservers.poll(environment) }
    // The environment may have been closed before the list was recorded there.
    if isClosed { endObservations() }
    return observation
  }

  private func endObservations() {
    environment.observers.remove(ObjectIdentifier(self))
    observers.close()
  }

  /// Marks the handle as closed, so later operations throw.
  func markClosed() {
    closed.store(true, ordering: .sequentiallyConsistent)
  }

  /// Waits for running operations, makes previous writes durable, and releases the handle.
  ///
  /// - Throws: ``StoreError`` if the writes could not be made durable. The handle is released even if an error is
  ///   thrown.
  func close() async throws {
    let failure = await environment.writer.close(self)
    await environment.maintenanceQueue.run { self.finishClosing() }
    if let failure { throw failure }
  }

  private func finishClosing() {
    let own = ObjectIdentifier(self)
    environment.readers.waitForReads { $0.handle == own || $0.root == own }
    release()
  }

  /// Releases the handle.
  ///
  /// Releasing the last root handle closes the environment.
  private func release() {
    let (wasReleased, database, isClaimed) = state.withLock { state in
      defer { state.isReleased = true }
      return state
    }
    guard !wasReleased else { return }
    endObservations()
    if let database { environment.releaseDatabase(named: database, isClaimed: isClaimed) }
    if root == nil { EnvironmentTable.release(environment) }
  }
}

/// The environments that this process has open.
///
/// Opening a file twice in one process would break its locks.
enum EnvironmentTable {
  /// The queue that environments are opened on, because opening blocks.
  private static let queue = DispatchQueueExecutor(label: "Larder.LMDBEnvironment.opening")

  private static let files = SharedFiles<SharedEnvironment>()

  /// Returns an open environment, or opens it.
  ///
  /// - Returns: The environment, counted; balance it with `release(_:)`.
  /// - Throws: ``StoreError``.
  static func take(_ configuration: EnvironmentConfiguration) async throws -> SharedEnvironment {
    try await queue.run {
      let found = try configuration.findFiles()
      let open = try found?.identity.flatMap {
        try files.take(
          $0, access: configuration.access, durability: configuration.durability, store: configuration.name)
      }
      if let open { return open }
      // Opening and closing the lock file of an open environment would release the process's locks on it.
      if let lock = found?.lockIdentity, files.contains(where: { $0.opened.lockIdentity == lock }) {
        throw StoreError(
          .locked, during: .open, store: configuration.name,
          message: "this process still has the previous data file open; close all of its stores first",
          isRetryable: true)
      }
      let environment = try SharedEnvironment(configuration, files: found)
      files.insert(environment)
      return environment
    }
  }

  /// Returns the files of an environment that no process has open.
  ///
  /// A process that uses no locks is not noticed.
  ///
  /// - Throws: ``StoreError``: `notFound`; `locked` if a process has it open, this one included.
  static func unusedFiles(
    of configuration: EnvironmentConfiguration, during operation: StoreOperation
  ) async throws -> EnvironmentFiles {
    try await queue.run {
      guard let found = try configuration.findFiles(), found.hasData else {
        throw StoreError(
          .notFound, during: operation, store: configuration.name, message: "there is no LMDB environment at this path")
      }
      // Examining the lock file of an open environment would release the process's locks on it.
      let isOpen = files.contains {
        $0.opened.identity == found.identity || $0.opened.lockIdentity.map { $0 == found.lockIdentity } ?? false
      }
      let isInUse: Bool
      do throws(LMDBError) {
        isInUse = isOpen ? true : try LockFile.isInUse(found.lockFile)
      } catch {
        throw StoreError(
          error, during: operation, store: configuration.name, message: "the lock file cannot be examined")
      }
      guard !isInUse else {
        throw StoreError(
          .locked, during: operation, store: configuration.name,
          message: "a program has the environment open; end it first", isRetryable: true)
      }
      return found
    }
  }

  /// Gives back an environment, and closes it if it was the last use.
  ///
  /// Blocks.
  static func release(_ environment: SharedEnvironment) {
    // Closed under the lock, so that the next opener of the file finds it closed.
    files.release(environment) { $0.close() }
  }
}

extension SharedEnvironment: SharedFile {
  var identity: FileAttributes.Identity { opened.identity }
}
#endif
