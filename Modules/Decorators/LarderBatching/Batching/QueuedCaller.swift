/// Who waits in the queue of a ``BatchingStore``.
///
/// It is plain bytes, so that a thousand of them come into the queue, go into a group and are told without a count of
/// references being changed from another core than the last time, each of which takes as long as a lock.
@usableFromInline
struct QueuedCaller: @unchecked Sendable {
  // Proof for @unchecked: both the continuation and the call are sendable; the reference to the call is only not counted.

  // Not a checked continuation: that one costs as much again, and is resumed exactly once.
  private let continuation: UnsafeContinuation<TurnOutcome, Never>

  /// The call, which the caller keeps until it is told.
  @usableFromInline
  let call: Unmanaged<QueuedCall>

  /// Describes a caller.
  ///
  /// - Parameters:
  ///   - continuation: Where it waits.
  ///   - call: Its call, which it keeps until it is told.
  init(_ continuation: UnsafeContinuation<TurnOutcome, Never>, _ call: QueuedCall) {
    self.continuation = continuation
    self.call = Unmanaged.passUnretained(call)
  }

  /// Tells it that its call is over, or that it is its turn; only once.
  func tell(_ outcome: TurnOutcome) {
    continuation.resume(returning: outcome)
  }
}
