import Synchronization

/// A base read of one key, for which any number of readers wait.
///
/// It belongs to none of them: who is cancelled stops waiting, and it goes on.
final class SharedLoad: Sendable {
  private typealias Waiter = CheckedContinuation<(any CachedValue)?, any Error>

  private struct State {
    var result: Result<(any CachedValue)?, any Error>?
    var waiters: [UInt64: Waiter] = [:]
    var nextID: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Waits for the result.
  ///
  /// - Throws: What the base threw; `CancellationError` where the task is cancelled before there is a result.
  func value() async throws -> (any CachedValue)? {
    if let result = state.withLock({ $0.result }) { return try result.get() }
    let id = state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        // A cancellation that came before this is seen here; one that comes after it finds the waiter.
        let result: Result<(any CachedValue)?, any Error>? = state.withLock { state in
          if let result = state.result { return result }
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiters[id] = waiter
          return nil
        }
        if let result { waiter.resume(with: result) }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }
  }

  /// Gives all who wait, and all who still come, the result.
  ///
  /// - Parameter result: The result; only the first counts.
  func finish(_ result: Result<(any CachedValue)?, any Error>) {
    let waiters = state.withLock { state in
      if state.result == nil { state.result = result }
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume(with: result) }
  }
}
