#if LMDB
import CLMDB
import Larder
import LarderFiles
import Synchronization

/// The right of one object to use an environment, until it is closed or dropped.
///
/// A root lease is counted by the table of environments. Others depend on one: they are closed with it.
final class EnvironmentLease: Sendable {
  private static let lastNumber = Atomic<Int>(0)

  let environment: SharedEnvironment

  /// What errors call its owner.
  let name: String

  private let root: EnvironmentLease?
  private let identity: ReaderIdentity
  private let closed = Atomic<Bool>(false)
  private let state = Mutex((isReleased: false, database: nil as StoreKey?))

  /// Takes over a lease that the table of environments has counted.
  init(of environment: SharedEnvironment, name: String) {
    self.environment = environment
    self.name = name
    root = nil
    let number = EnvironmentLease.lastNumber.add(1, ordering: .relaxed).newValue
    identity = ReaderIdentity(lease: number, root: number)
  }

  /// Makes a lease that depends on another.
  init(dependingOn root: EnvironmentLease, name: String) {
    environment = root.environment
    self.name = name
    self.root = root
    let number = EnvironmentLease.lastNumber.add(1, ordering: .relaxed).newValue
    identity = ReaderIdentity(lease: number, root: root.identity.root)
  }

  deinit {
    release()
  }

  /// Opens an environment, or takes part in one that is open already.
  ///
  /// - Throws: ``StoreError``.
  static func take(_ configuration: EnvironmentConfiguration) async throws -> EnvironmentLease {
    let environment = try await EnvironmentTable.queue.run { try EnvironmentTable.take(configuration) }
    return EnvironmentLease(of: environment, name: configuration.name)
  }

  var isClosed: Bool {
    closed.load(ordering: .acquiring) || root?.isClosed ?? false
  }

  /// Refuses what comes after closing.
  func checkOpen(for operation: StoreOperation) throws {
    guard !isClosed else {
      throw StoreError(.closed, during: operation, store: name, message: "the store was closed")
    }
  }

  /// Refuses what writes, if the environment is only read.
  func checkWritable(for operation: StoreOperation) throws {
    guard environment.access != .readWrite else { return }
    try StoreInformation(
      name: name, acknowledgement: Acknowledgement(environment.durability), sharing: .betweenProcesses,
      access: environment.access
    ).checkWritable(for: operation)
  }

  /// Counts the handle of the named database that its owner, a store, has open, until the lease ends.
  func retainHandle(_ identifier: MDB_dbi, of name: StoreKey) {
    environment.handles.retain(name, identifier)
    state.withLock { $0.database = name }
  }

  /// Reads a snapshot.
  ///
  /// - Parameter isBackup: Whether it may last and uses no named database.
  /// - Throws: What `body` throws; ``StoreError`` where the snapshot cannot be had, or `body` meets an `LMDBError`.
  @inline(__always)
  func read<Result>(
    for operation: StoreOperation, isBackup: Bool = false, _ body: (OpaquePointer) throws -> Result
  ) throws -> Result {
    let reader = try beginRead(for: operation, isBackup: isBackup)
    defer { environment.readers.end(reader) }
    do {
      return try body(reader.transaction.pointer)
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: name, message: "reading failed")
    }
  }

  private func beginRead(for operation: StoreOperation, isBackup: Bool) throws -> ReaderPool.Reader {
    let reader: ReaderPool.Reader
    do {
      var identity = identity
      identity.isBackup = isBackup
      reader = try environment.beginRead(for: identity)
    } catch {
      try checkOpen(for: operation)
      throw StoreError(error, during: operation, store: name, message: "a snapshot cannot be read")
    }
    // Looked at after the read was noted: whoever closes the lease waits for all that are.
    guard isClosed else { return reader }
    environment.readers.end(reader)
    throw StoreError(.closed, during: operation, store: name, message: "the store was closed")
  }

  /// Makes later operations throw.
  func markClosed() {
    closed.store(true, ordering: .sequentiallyConsistent)
  }

  /// Waits for running operations, makes what was written durable, and ends the lease.
  ///
  /// - Throws: ``StoreError`` where making durable fails; the lease has ended all the same.
  func close() async throws {
    let failure = await environment.writer.close(self)
    await environment.maintenanceQueue.run { self.finishClosing() }
    if let failure { throw failure }
  }

  private func finishClosing() {
    environment.readers.waitForReads { root == nil ? $0.root == identity.root : $0.lease == identity.lease }
    release()
  }

  /// Ends the lease; the last one of an environment closes it.
  private func release() {
    let (wasReleased, database) = state.withLock { state in
      defer { state.isReleased = true }
      return state
    }
    guard !wasReleased else { return }
    if let database { environment.handles.release(database) }
    if root == nil { EnvironmentTable.release(environment.identity) }
  }
}
#endif
