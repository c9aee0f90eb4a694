import Larder

/// A batch whose changes were measured.
struct SizedBatch<Value: Sendable>: Sendable {
  /// The changes, each with its size.
  let changes: [(change: Change<Value>, size: BatchSize)]

  /// How large they are together, counting each change to a key that has several.
  let size: BatchSize

  /// Measures a batch.
  init(_ batch: ChangeBatch<Value>, bounds: BatchBounds<Value>) {
    changes = batch.changes.map { ($0, bounds.size(of: $0)) }
    size = changes.reduce(into: BatchSize()) { $0 += $1.size }
  }

  /// Whether it removes a range.
  var removesRange: Bool {
    changes.contains { if case .removeAll = $0.change { true } else { false } }
  }
}
