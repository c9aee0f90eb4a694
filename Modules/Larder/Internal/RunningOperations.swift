import Synchronization

/// The operations that go on in a store or decorator, for which closing waits.
package final class RunningOperations: Sendable {
  private struct State {
    var count = 0
    var isClosing = false
    /// Those who wait until none goes on.
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Makes a count of none.
  package init() {}

  /// Notes an operation, which ``end()`` ends.
  ///
  /// - Returns: Whether it may go on: not once closing has begun.
  package func begin() -> Bool {
    state.withLock { state in
      guard !state.isClosing else { return false }
      state.count += 1
      return true
    }
  }

  /// Notes the end of an operation.
  package func end() {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      state.count -= 1
      guard state.count == 0 else { return [] }
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Whether nothing may begin any more.
  package var isClosing: Bool {
    state.withLock { $0.isClosing }
  }

  /// Lets nothing begin any more, and waits for what goes on.
  package func close() async {
    await withCheckedContinuation { continuation in
      let isQuiet = state.withLock { state in
        state.isClosing = true
        if state.count > 0 { state.waiting.append(continuation) }
        return state.count == 0
      }
      if isQuiet { continuation.resume() }
    }
  }
}
