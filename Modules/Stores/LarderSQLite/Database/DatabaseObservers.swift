#if SQLite
import Larder

/// The observed stores of a database.
///
/// The writer reports each commit of this process. While a store is observed, a task asks the writer every 50
/// milliseconds whether another connection has committed. Such a commit is a change of all entries, because SQLite does
/// not record what changed.
final class DatabaseObservers: Sendable {
  /// The time between two polls for commits of others.
  private static var pollInterval: Duration { .milliseconds(50) }

  private let state = Locked((stores: ObservedStores<[UInt8]>(), isPolling: false))

  /// A Boolean value that indicates whether a commit must be reported.
  var areObserving: Bool { state.withLock { $0.stores.areObserving } }

  /// Records that a store is observed.
  ///
  /// - Parameters:
  ///   - handle: The handle of the store.
  ///   - root: The handle that it depends on.
  ///   - table: The identifier of its table.
  ///   - observers: The observers of the store.
  /// - Returns: A Boolean value that indicates whether the caller must begin to poll for commits of others.
  func add(
    _ handle: ObjectIdentifier, root: ObjectIdentifier, _ table: [UInt8], _ observers: StoreObservers
  ) -> Bool {
    state.withLock { state in
      state.stores.add(handle, root: root, table, observers)
      defer { state.isPolling = true }
      return !state.isPolling
    }
  }

  /// Ends the observations of a handle that is released, and of those that depend on it.
  func remove(_ handle: ObjectIdentifier) {
    let removed = state.withLock { $0.stores.remove(handle) }
    for observers in removed { observers.close() }
  }

  /// Ends the observations of all stores, because the file was moved, removed or replaced.
  func endAll() {
    let removed = state.withLock { $0.stores.removeAll() }
    for observers in removed { observers.close() }
  }

  /// Reports a commit of this process.
  ///
  /// - Parameters:
  ///   - commit: The changes.
  ///   - hasSideEffects: A Boolean value that indicates whether the database may have changed more entries by itself.
  func report(_ commit: CommitRecord<[UInt8]>, hasSideEffects: Bool) {
    state.withLock { $0.stores }.report(commit, followsOthers: hasSideEffects)
  }

  /// Reports that others have committed.
  func reportOthers() {
    state.withLock { $0.stores }.reportOthers()
  }

  /// Polls for commits of others as long as a store of the database is observed.
  static func poll(_ database: SharedDatabase) {
    Task.detached { [weak database] in
      while await ContinuousClock().hasSlept(for: pollInterval) {
        guard let database, database.observers.continuesPolling() else { return }
        await database.writer.reportOthers(in: database)
      }
    }
  }

  /// Returns whether a store is still observed, and otherwise notes that the polling ends.
  private func continuesPolling() -> Bool {
    state.withLock { state in
      state.isPolling = state.stores.areObserving
      return state.isPolling
    }
  }
}
#endif
