import Synchronization

/// A call that waits in the queue of a ``WriteBehindStore``.
///
/// Most calls do not wait. So what is needed for waiting comes into play only when the queue has said that one has to,
/// and by then the call may be over already.
final class PendingCall: Sendable {
  // Not a checked continuation: that one costs as much again, and is resumed exactly once, when the call is over.
  private let handoff = Mutex(CallerHandoff<UnsafeContinuation<TurnOutcome, Never>>.running)

  /// Waits until the call is over.
  func wait() async -> TurnOutcome {
    await withUnsafeContinuation { continuation in
      if let outcome = handoff.withLock({ $0.wait(continuation) }) { continuation.resume(returning: outcome) }
    }
  }

  /// Tells whoever waits that the call is over; only once.
  func end(_ outcome: TurnOutcome) {
    handoff.withLock { $0.end(outcome) }?.resume(returning: outcome)
  }
}
