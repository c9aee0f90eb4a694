#if LMDB
import CLMDB
import Larder
import Synchronization

/// The observed stores of an environment.
///
/// The writer reports each commit of this process. A commit of another process is found by the number of the latest
/// transaction, which the writer looks at every 50 milliseconds while a store is observed. Such a commit is a change of
/// all entries, because LMDB does not record what changed.
final class EnvironmentObservers: Sendable {
  /// The time between two looks for commits of other processes.
  private static var pollInterval: Duration { .milliseconds(50) }

  /// A store that is or was observed, until its handle is released.
  private struct ObservedStore: Sendable {
    let handle: ObjectIdentifier
    let root: ObjectIdentifier
    let identifier: MDB_dbi
    let observers: StoreObservers
  }

  private struct State {
    var stores: [ObservedStore] = []
    /// The latest transaction whose changes were reported, or `nil` if no task looks for those of other processes.
    var lastReported: Int?
  }

  private let state = Mutex(State())

  /// Whether a commit must be reported.
  var areObserving: Bool {
    state.withLock { $0.stores.contains { !$0.observers.isEmpty } }
  }

  /// Records that a store is observed.
  ///
  /// - Parameters:
  ///   - handle: The handle of the store.
  ///   - root: The handle on which it depends.
  ///   - identifier: The database of the store.
  ///   - observers: The observers of the store.
  ///   - transaction: A transaction that was the latest one not before the observation began.
  /// - Returns: Whether the caller must begin to look for commits of other processes.
  func add(
    _ handle: ObjectIdentifier, root: ObjectIdentifier, _ identifier: MDB_dbi, _ observers: StoreObservers,
    since transaction: Int
  ) -> Bool {
    state.withLock { state in
      if !state.stores.contains(where: { $0.handle == handle }) {
        state.stores.append(
          ObservedStore(handle: handle, root: root, identifier: identifier, observers: observers))
      }
      guard state.lastReported == nil else { return false }
      state.lastReported = transaction
      return true
    }
  }

  /// Ends the observations of a handle that is released, and of those that depend on it.
  func remove(_ handle: ObjectIdentifier) {
    let removed = state.withLock { state in
      let removed = state.stores.filter { $0.handle == handle || $0.root == handle }
      state.stores.removeAll { $0.handle == handle || $0.root == handle }
      return removed
    }
    for store in removed { store.observers.close() }
  }

  /// Reports a commit of this process.
  ///
  /// - Parameters:
  ///   - commit: The changes.
  ///   - transaction: The number of the transaction, or `nil` if it wrote nothing or its outcome is unknown.
  func report(_ commit: CommitRecord, transaction: Int?) {
    let stores = state.withLock { state in
      // Otherwise another process has committed in between, which the next look finds.
      if let transaction, state.lastReported == transaction - 1 { state.lastReported = transaction }
      return state.stores
    }
    for store in stores {
      if !commit.isRecording {
        store.observers.report([.range(.all)])
      } else if let changes = commit.changes[store.identifier] {
        store.observers.report(changes)
      }
    }
  }

  /// Reports commits of other processes.
  ///
  /// - Parameter latest: The number of the latest transaction.
  /// - Returns: Whether a store is still observed.
  func reportOthers(upTo latest: Int) -> Bool {
    let stores = state.withLock { state -> [ObservedStore]? in
      guard state.stores.contains(where: { !$0.observers.isEmpty }), let last = state.lastReported else {
        state.lastReported = nil
        return nil
      }
      state.lastReported = max(last, latest)
      return latest > last ? state.stores : []
    }
    guard let stores else { return false }
    for store in stores { store.observers.report([.range(.all)]) }
    return true
  }

  /// Looks for commits of other processes as long as a store of the environment is observed.
  static func lookForCommits(of environment: SharedEnvironment) {
    Task.detached { [weak environment] in
      repeat {
        do {
          try await Task.sleep(for: pollInterval)
        } catch {
          return
        }
      } while await environment?.reportOtherCommits() ?? false
    }
  }
}

/// The changes of a write transaction, for the observers of its stores.
struct CommitRecord: Sendable {
  /// Whether the changes are recorded, which costs time.
  ///
  /// If not, any entry may have changed.
  let isRecording: Bool

  /// The changes of each database.
  private(set) var changes: [MDB_dbi: BoundedChanges] = [:]

  /// Whether anything was set or removed.
  ///
  /// LMDB gives the number of a transaction that writes nothing to the next one, which may be one of another process.
  private(set) var hasWritten = false

  /// Records a change.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - database: The database.
  ///   - hasWritten: Whether anything was set or removed.
  mutating func append(_ change: StoreChange, in database: MDB_dbi, hasWritten: Bool) {
    if hasWritten { self.hasWritten = true }
    if isRecording { changes[database, default: BoundedChanges()].append(change) }
  }

  /// Records the changes of a batch.
  mutating func append(_ batch: ChangeBatch<some Any>, in database: MDB_dbi, hasWritten: Bool) {
    if hasWritten { self.hasWritten = true }
    if isRecording { changes[database, default: BoundedChanges()].append(batch) }
  }

  /// Records that the entries of some keys were written.
  mutating func append(_ keys: [StoreKey], in database: MDB_dbi, hasWritten: Bool) {
    for key in keys { append(.key(key), in: database, hasWritten: hasWritten) }
  }

  /// Forgets the changes of an attempt that is repeated.
  mutating func removeAll() {
    self = CommitRecord(isRecording: isRecording)
  }
}
#endif
