import Larder

/// The maximum size of a commit or of the pending writes.
///
/// ```swift
/// store.batched(bounds: BatchBounds(changes: 1000))
/// store.batched(bounds: BatchBounds(changes: 10_000, bytes: 4 << 20) { photo in photo.pixels.count })
/// ```
///
/// A single batch that is larger than the bounds is not refused. It is committed alone.
public struct BatchBounds<Value>: Sendable {
  /// The maximum number of changes.
  public let changes: Int

  /// The maximum number of bytes of keys and values, or `nil` if bytes are not counted.
  public let bytes: Int?

  /// Returns the approximate size of a value in bytes.
  private let size: (@Sendable (Value) -> Int)?

  /// Creates bounds for the number of changes.
  ///
  /// - Parameter changes: The maximum number of changes, at least 1. Defaults to 10,000.
  public init(changes: Int = 10_000) {
    self.changes = max(1, changes)
    bytes = nil
    size = nil
  }

  /// Creates bounds for the number of changes and their size in bytes.
  ///
  /// - Parameters:
  ///   - changes: The maximum number of changes, at least 1. Defaults to 10,000.
  ///   - bytes: The maximum number of bytes of keys and values together, at least 1.
  ///   - size: A closure that returns the approximate size of a value in bytes. It is called once for each change, in
  ///     the task of its caller.
  public init(changes: Int = 10_000, bytes: Int, size: @escaping @Sendable (Value) -> Int) {
    self.changes = max(1, changes)
    self.bytes = max(1, bytes)
    self.size = size
  }

  /// Returns the size of a change.
  func size(of change: BatchChange<Value>) -> BatchSize {
    guard let size else { return BatchSize(changes: 1, bytes: 0) }
    return switch change {
    case .set(let key, let value):
      // The closure may return any number. Sums must not overflow.
      BatchSize(changes: 1, bytes: key.count + min(max(0, size(value)), 1 << 40))
    case .remove(let key): BatchSize(changes: 1, bytes: key.count)
    case .removeAll: BatchSize(changes: 1, bytes: 0)
    }
  }

  /// Returns the size of a batch.
  func size(of batch: ChangeBatch<Value>) -> BatchSize {
    // Without a closure, the changes need not be visited.
    guard size != nil else { return BatchSize(changes: batch.count, bytes: 0) }
    var sum = BatchSize()
    for change in batch.changes { sum += size(of: change) }
    return sum
  }

  /// Returns the size of the largest commit that a store accepts and the bounds allow.
  func limit(for base: StoreInformation) -> BatchSize {
    BatchSize(changes: min(changes, base.maximumChangeCount ?? .max), bytes: bytes ?? .max)
  }
}

/// The size of a batch.
struct BatchSize: Hashable, Sendable {
  /// The number of changes.
  var changes = 0

  /// The number of bytes of their keys and values, or 0 if bytes are not counted.
  var bytes = 0

  /// Returns whether the size is within a limit.
  func fits(in limit: BatchSize) -> Bool {
    changes <= limit.changes && bytes <= limit.bytes
  }

  /// Returns whether the size has reached a limit, in changes or in bytes.
  func reaches(_ limit: BatchSize) -> Bool {
    changes >= limit.changes || bytes >= limit.bytes
  }

  static func + (left: BatchSize, right: BatchSize) -> BatchSize {
    BatchSize(changes: left.changes + right.changes, bytes: left.bytes + right.bytes)
  }

  static func += (left: inout BatchSize, right: BatchSize) {
    left = left + right
  }
}
