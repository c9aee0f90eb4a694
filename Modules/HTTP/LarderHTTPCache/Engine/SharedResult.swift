import Larder
#if HTTPCache

/// A result that any number of callers wait for, each of them with a time limit.
final class SharedResult<Value: Sendable>: Sendable {
  /// The error of a caller whose time limit has passed.
  struct TimedOut: Error {}

  private struct State {
    var nextID: UInt64 = 0
    var result: Result<Value, any Error>?
    var waiters: [UInt64: CheckedContinuation<Value, any Error>] = [:]
  }

  private let state = Locked(State())

  /// The result, or `nil` if there is none yet.
  var result: Result<Value, any Error>? { state.withLock { $0.result } }

  /// Sets the result and passes it to all waiters.
  ///
  /// A later result is ignored.
  func finish(_ result: Result<Value, any Error>) {
    let waiters = state.withLock { state -> [UInt64: CheckedContinuation<Value, any Error>] in
      guard state.result == nil else { return [:] }
      state.result = result
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume(with: result) }
  }

  /// Waits for the result.
  ///
  /// - Parameter limit: The time limit; `nil` for none.
  /// - Throws: The error of the result; ``TimedOut`` when the limit has passed; `CancellationError` if the task is
  ///   cancelled before there is a result.
  func value(within limit: TimeLimit? = nil) async throws -> Value {
    if let result { return try result.get() }
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let call = limit?.begin { [weak self] in self?.fail(id, with: TimedOut()) }
    defer { if let call { limit?.end(call) } }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        // A cancellation or a time limit before this point is noticed here. A later one finds the waiter.
        let result: Result<Value, any Error>? = state.withLock { state in
          if let result = state.result { return result }
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiters[id] = waiter
          return nil
        }
        if let result { return waiter.resume(with: result) }
        if let call, limit?.isOver(call) == true { fail(id, with: TimedOut()) }
      }
    } onCancel: {
      fail(id, with: CancellationError())
    }
  }

  private func fail(_ id: UInt64, with error: any Error) {
    state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: error)
  }
}

extension SharedResult where Value == Void {
  /// Sets the result, so that all waiters continue.
  func finish() {
    finish(.success(()))
  }
}
#endif
