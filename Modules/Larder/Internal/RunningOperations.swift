import Synchronization

/// A counter of the running operations of a store or decorator, for which closing waits.
package final class RunningOperations: Sendable {
  private struct State {
    var count = 0
    var isClosing = false
    /// The callers of ``close()`` that wait until no operation is running.
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Creates a counter without running operations.
  package init() {}

  /// Records the start of an operation, unless closing has begun.
  ///
  /// Call ``end()`` when the operation ends.
  ///
  /// - Returns: Whether the operation may run, which is `false` once closing has begun.
  package func begin() -> Bool {
    state.withLock { state in
      guard !state.isClosing else { return false }
      state.count += 1
      return true
    }
  }

  /// Records the end of an operation.
  package func end() {
    let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      state.count -= 1
      guard state.count == 0 else { return [] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for continuation in waiters { continuation.resume() }
  }

  /// A Boolean value that indicates whether closing has begun, so that no further operation may start.
  package var isClosing: Bool {
    state.withLock { $0.isClosing }
  }

  /// Prevents further operations from starting, and waits for the running ones to end.
  package func close() async {
    await withCheckedContinuation { continuation in
      let isQuiet = state.withLock { state in
        state.isClosing = true
        if state.count > 0 { state.waiters.append(continuation) }
        return state.count == 0
      }
      if isQuiet { continuation.resume() }
    }
  }
}
