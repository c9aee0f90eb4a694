#if LMDB
import CLMDB
import Larder
import LarderFiles

/// The observed stores of an environment.
///
/// The writer reports each commit of this process. While a store is observed, a task polls the number of the latest
/// transaction every 50 milliseconds. This reveals commits of other processes. Such a commit is a change of all entries,
/// because LMDB does not record what changed.
final class EnvironmentObservers: Sendable {
  /// The time between two polls for commits of other processes.
  private static var pollInterval: Duration { .milliseconds(50) }

  private struct State {
    var stores = ObservedStores<MDB_dbi>()
    var commits = ReportedCommits()
    /// A Boolean value that indicates whether a task polls for commits of other processes.
    var isPolling = false
  }

  private let state = Locked(State())

  /// A Boolean value that indicates whether a commit must be reported.
  var areObserving: Bool {
    state.withLock { $0.stores.areObserving }
  }

  /// Records that a store is observed.
  ///
  /// - Parameters:
  ///   - handle: The handle of the store.
  ///   - root: The handle that it depends on.
  ///   - identifier: The database of the store.
  ///   - observers: The observers of the store.
  ///   - transaction: A transaction that was the latest one not before the observation began.
  /// - Returns: A Boolean value that indicates whether the caller must begin to poll for commits of other processes.
  func add(
    _ handle: ObjectIdentifier, root: ObjectIdentifier, _ identifier: MDB_dbi, _ observers: StoreObservers,
    since transaction: Int
  ) -> Bool {
    state.withLock { state in
      state.stores.add(handle, root: root, identifier, observers)
      guard !state.isPolling else { return false }
      state.isPolling = true
      state.commits.begin(after: transaction)
      return true
    }
  }

  /// Ends the observations of a handle that is released, and of those that depend on it.
  func remove(_ handle: ObjectIdentifier) {
    let removed = state.withLock { $0.stores.remove(handle) }
    for observers in removed { observers.close() }
  }

  /// Ends the observations of all stores, because the files were moved, removed or replaced.
  func endAll() {
    let removed = state.withLock { state in
      state.isPolling = false
      return state.stores.removeAll()
    }
    for observers in removed { observers.close() }
  }

  /// Records that this process is about to commit a transaction.
  ///
  /// Call it while the transaction holds LMDB's write lock. Balance it with ``report(_:hasWritten:)`` or
  /// ``didNotCommit()``.
  ///
  /// - Parameter transaction: The number of the transaction.
  func willCommit(_ transaction: Int) {
    state.withLock { $0.commits.willCommit(transaction) }
  }

  /// Records that the transaction of this process has failed.
  func didNotCommit() {
    state.withLock { _ = $0.commits.didEnd(hasWritten: false) }
  }

  /// Reports a commit of this process.
  ///
  /// - Parameters:
  ///   - commit: The changes.
  ///   - hasWritten: A Boolean value that indicates whether the transaction has certainly written something.
  func report(_ commit: CommitRecord<MDB_dbi>, hasWritten: Bool) {
    let (followsOthers, stores) = state.withLock { state in
      (state.commits.didEnd(hasWritten: hasWritten), state.stores)
    }
    stores.report(commit, followsOthers: followsOthers)
  }

  /// Reports commits of other processes.
  ///
  /// - Parameter latest: The number of the latest transaction that a read of this process has found.
  /// - Returns: A Boolean value that indicates whether a store is still observed.
  func reportOthers(upTo latest: Int) -> Bool {
    let (areObserving, stores) = state.withLock { state -> (Bool, ObservedStores<MDB_dbi>?) in
      guard state.stores.areObserving else {
        state.isPolling = false
        return (false, nil)
      }
      return (true, state.commits.didFind(latest) ? state.stores : nil)
    }
    stores?.reportOthers()
    return areObserving
  }

  /// Polls for commits of other processes as long as a store of the environment is observed.
  ///
  /// It does not run on the writer, because it waits whenever another process writes.
  static func poll(_ environment: SharedEnvironment) {
    let queue = DispatchQueueExecutor(label: "Larder.LMDBEnvironment.poll")
    Task.detached { [weak environment] in
      while await ContinuousClock().hasSlept(for: pollInterval) {
        guard let environment, await queue.run({ environment.reportOtherCommits() }) else { return }
      }
    }
  }
}

/// The numbers of the transactions whose changes were reported.
///
/// LMDB numbers the transactions of all processes without gaps. A transaction that writes nothing leaves its number to
/// the next one, which may be one of another process. One transaction of this process at a time has the write lock, and
/// its number is known before it commits. All other new numbers are those of other processes.
struct ReportedCommits: Sendable, Hashable {
  /// The latest transaction up to which everything was reported.
  private(set) var last = 0

  /// The transaction that this process is about to commit, or has committed and not yet reported.
  private(set) var own: Int?

  /// Begins after a transaction: it and all earlier ones need no report.
  mutating func begin(after transaction: Int) {
    last = transaction
  }

  /// Records that this process is about to commit a transaction, which has the write lock.
  mutating func willCommit(_ transaction: Int) {
    own = transaction
  }

  /// Records that the transaction of this process has ended and that its changes, if any, are reported now.
  ///
  /// - Parameter hasWritten: A Boolean value that indicates whether it has certainly changed something, so the number
  ///   is its own.
  /// - Returns: A Boolean value that indicates whether to report earlier commits of other processes too.
  mutating func didEnd(hasWritten: Bool) -> Bool {
    guard let ended = own else { return false }
    own = nil
    guard hasWritten, ended > last else { return false }
    defer { last = ended }
    return last < ended - 1
  }

  /// Records that a read of this process has found a transaction.
  ///
  /// The number may be older than the other calls, because the read is not synchronized with the writer.
  ///
  /// - Parameter latest: The number of the transaction.
  /// - Returns: A Boolean value that indicates whether to report commits of other processes.
  mutating func didFind(_ latest: Int) -> Bool {
    // If the transaction of this process turns out to have written nothing, the number is found again.
    let others = latest == own ? latest - 1 : latest
    guard others > last else { return false }
    last = others
    return true
  }
}
#endif
