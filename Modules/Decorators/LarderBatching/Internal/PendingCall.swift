import Synchronization

/// The outcome of waiting in a queue.
enum TurnOutcome: Sendable {
  /// The caller's turn has begun; no other begins until the caller ends it.
  case turn
  /// The work that the caller waited for is over, with an error if it failed.
  case finished((any Error)?)
}

/// A call that waits in the queue of a ``BatchingStore`` or a ``WriteBehindStore``.
///
/// A caller enters the queue before it begins to wait, so the call may be over by then. Its outcome is kept until then.
final class PendingCall: Sendable {
  private enum State {
    case running
    // Not a checked continuation: that one costs as much again, and is resumed exactly once, when the call is over.
    case waiting(UnsafeContinuation<TurnOutcome, Never>)
    case over(TurnOutcome)
  }

  private let state = Mutex(State.running)

  /// Waits until the call is over.
  func wait() async -> TurnOutcome {
    await withUnsafeContinuation { continuation in
      let outcome: TurnOutcome? = state.withLock { state in
        if case .over(let outcome) = state { return outcome }
        state = .waiting(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }

  /// Ends the call.
  ///
  /// It must be called only once.
  func end(_ outcome: TurnOutcome) {
    let continuation: UnsafeContinuation<TurnOutcome, Never>? = state.withLock { state in
      defer { state = .over(outcome) }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    continuation?.resume(returning: outcome)
  }
}
