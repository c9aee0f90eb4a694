import Larder
import Synchronization

/// Closes a store, on a thread of its own, in the midst of one of its operations.
final class Closing<Store: DataStore>: Sendable {
  private let store: Store
  private let threads = SeparateThreads()
  private let (isCalled, hasReturned, early) = (Flag(), Flag(), Flag())
  private let task = Mutex<Task<Void, any Error>?>(nil)

  init(of store: Store) {
    self.store = store
  }

  /// Whether it was begun.
  var hasBegun: Bool { isCalled.isRaised }

  /// Whether it came back while the operation was still running.
  var cameBackEarly: Bool { early.isRaised }

  /// Calls `close`, and gives it time to come back too early; for the midst of an operation, which must not wait.
  func begin() {
    let (store, isCalled, hasReturned) = (store, isCalled, hasReturned)
    let task = Task(executorPreference: threads) {
      isCalled.raise()
      try await store.close()
      hasReturned.raise()
    }
    self.task.withLock { $0 = task }
    _ = isCalled.isRaised(within: .seconds(2))
    // A store with files may synchronize them first, and come back too early only then.
    if hasReturned.isRaised(within: .milliseconds(store.information.acknowledgement == .volatile ? 5 : 30)) {
      early.raise()
    }
  }

  /// Waits until `close` has returned.
  ///
  /// - Throws: What `close` throws.
  func end() async throws {
    try await task.withLock { $0 }?.value
  }
}
