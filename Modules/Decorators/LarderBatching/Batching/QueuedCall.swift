import Synchronization

/// A call that waits in the queue of a ``BatchingStore``, which does not know the type of its values.
///
/// A queue that knew it would be generic in code that is not specialized, and every touch of it would look up the
/// types of all that is in it: that was half of the cost of a write.
@usableFromInline
class QueuedCall: @unchecked Sendable {
  // Proof for @unchecked: it has a constant of a sendable type and an atomic, and so has the one class below it.

  /// What ``place`` holds while the call is not in the line.
  private static let nowhere: UInt64 = 0

  /// What ``place`` holds once the call is cancelled.
  private static let cancelled = UInt64.max

  /// How much the call writes.
  let size: BatchSize

  // One more than the call's number in the line. A call may be cancelled before it is there.
  private let place = Atomic(nowhere)

  /// Makes a call.
  ///
  /// - Parameter size: How much it writes; nothing unless given.
  @usableFromInline
  init(size: BatchSize = BatchSize()) {
    self.size = size
  }

  /// The call is in the line; only once.
  ///
  /// - Parameter number: The number under which it can leave.
  /// - Returns: Whether it was cancelled before, so that it is to leave.
  func enter(_ number: UInt64) -> Bool {
    place.exchange(number + 1, ordering: .acquiringAndReleasing) == QueuedCall.cancelled
  }

  /// The call is cancelled; only once.
  ///
  /// - Returns: The number under which it is to leave; `nil` where it is not in the line yet.
  func cancel() -> UInt64? {
    let place = place.exchange(QueuedCall.cancelled, ordering: .acquiringAndReleasing)
    return place == QueuedCall.nowhere ? nil : place - 1
  }
}
