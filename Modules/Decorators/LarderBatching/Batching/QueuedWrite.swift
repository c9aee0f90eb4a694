public import Larder

/// A call that writes values of one type.
@usableFromInline
final class QueuedWrite<Value: Sendable>: QueuedCall, @unchecked Sendable {
  // Proof for @unchecked: it adds a constant of a sendable type.

  @usableFromInline
  let batch: ChangeBatch<Value>

  /// Makes a call that writes a batch.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - size: How much that is.
  @inlinable
  init(_ batch: ChangeBatch<Value>, size: BatchSize) {
    self.batch = batch
    super.init(size: size)
  }
}
