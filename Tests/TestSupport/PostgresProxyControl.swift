#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif
import Larder

/// The state that a ``PostgresProxy`` shares with its thread.
final class ProxyControl: Sendable {
  struct State {
    var roundTrips = 0
    var connections = 0
    var delayToServer = Duration.zero
    var delayToClient = Duration.zero
    var cutInstant = PostgresProxy.CutInstant.beforeCommit
    var pendingCuts = 0
    var refusesNotifications = false
    var isClosing = false
    /// The callers that wait until all connections are cut.
    var cutters: [CheckedContinuation<Void, Never>] = []
    /// The callers that wait for the end of the thread.
    var closers: [CheckedContinuation<Void, Never>] = []
    /// A pipe that wakes the thread, or `nil` after its end.
    var alarm: Int32?
  }

  private let state = Locked(State())

  func read<Value: Sendable>(_ body: (State) -> Value) -> Value {
    state.withLock { body($0) }
  }

  /// Changes the state and wakes the thread.
  func update(_ body: (inout State) -> Void) {
    state.withLock { state in
      body(&state)
      state.wakeThread()
    }
  }

  /// Changes the state so that the thread resumes a continuation, or resumes it if the thread has ended.
  func update(
    _ continuations: WritableKeyPath<State, [CheckedContinuation<Void, Never>]>,
    with continuation: CheckedContinuation<Void, Never>, _ body: (inout State) -> Void = { _ in }
  ) {
    let isRunning = state.withLock { state in
      guard state.alarm != nil else { return false }
      body(&state)
      state[keyPath: continuations].append(continuation)
      state.wakeThread()
      return true
    }
    if !isRunning { continuation.resume() }
  }

  /// Changes the state on the thread itself, which needs no waking.
  func withState<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
    state.withLock { body(&$0) }
  }
}

extension ProxyControl.State {
  /// Takes one of the pending cuts, if it happens before, or after, a commit.
  mutating func takeCut(afterCommit: Bool) -> PostgresProxy.CutInstant? {
    guard pendingCuts > 0, afterCommit == (cutInstant == .afterCommit) else { return nil }
    pendingCuts -= 1
    return cutInstant
  }

  fileprivate func wakeThread() {
    // If the pipe is full, the thread wakes anyway.
    if let alarm { _ = write(alarm, [1], 1) }
  }
}
