import Synchronization

/// A call that waits in a queue, which does not know the type of its values.
///
/// A queue that knew it would be generic in code that is not specialized, and every touch of it would look up the
/// types of all that is in it: that was half of the cost of a write.
@usableFromInline
class QueuedCall: @unchecked Sendable {
  // Proof for @unchecked: it has constants of sendable types and a Mutex, and so has the one class below it.

  /// How much the call writes.
  let size: BatchSize

  // Not a checked continuation: that one costs as much again, and is resumed exactly once, when the call is over.
  private let handoff = Mutex(CallerHandoff<UnsafeContinuation<TurnOutcome, Never>>.running)

  /// Makes a call.
  ///
  /// - Parameter size: How much it writes; nothing unless given.
  @usableFromInline
  init(size: BatchSize = BatchSize()) {
    self.size = size
  }

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
