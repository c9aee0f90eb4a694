import Larder
import Synchronization

/// A call that waits in a queue, which does not know the type of its values.
///
/// A queue that knew it would be generic in code that is not specialized, and every touch of it would look up the
/// types of all that is in it: that was half of the cost of a write.
class QueuedCall: @unchecked Sendable {
  // Proof for @unchecked: it has no variable but in a Mutex, and the one class below it only a constant of a sendable type.

  /// A write of values of one type.
  private final class Write<Value: Sendable>: QueuedCall, @unchecked Sendable {
    let batch: ChangeBatch<Value>

    init(_ batch: ChangeBatch<Value>) {
      self.batch = batch
    }
  }

  // Not a checked continuation: that one costs as much again, and is resumed exactly once, when the call is over.
  private let handoff = Mutex(CallerHandoff<UnsafeContinuation<TurnOutcome, Never>>.running)

  /// Makes a call without a write.
  init() {}

  /// Makes a call that writes a batch.
  static func write<Value: Sendable>(_ batch: ChangeBatch<Value>) -> QueuedCall {
    Write(batch)
  }

  /// What a call writes.
  ///
  /// - Parameter type: The type of its values, which must be that of the batch with which it was made.
  func batch<Value: Sendable>(of type: Value.Type) -> ChangeBatch<Value> {
    unsafeDowncast(self, to: Write<Value>.self).batch
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
