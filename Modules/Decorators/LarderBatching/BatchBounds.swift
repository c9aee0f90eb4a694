import Larder

/// How much goes into one commit, or waits for it, at most.
///
/// ```swift
/// store.batched(bounds: BatchBounds(changes: 1000))
/// store.batched(bounds: BatchBounds(changes: 10_000, bytes: 4 << 20) { photo in photo.pixels.count })
/// ```
///
/// What is larger than the bounds by itself, such as one huge batch of a caller, is not refused: it goes alone.
public struct BatchBounds<Value>: Sendable {
  /// The most changes.
  public let changes: Int

  /// The most bytes of keys and values, or `nil` where they are not counted.
  public let bytes: Int?

  /// About how many bytes a value has.
  private let size: (@Sendable (Value) -> Int)?

  /// Bounds the number of changes.
  ///
  /// - Parameter changes: The most changes, at least 1; 10,000 unless given.
  public init(changes: Int = 10_000) {
    self.changes = max(1, changes)
    bytes = nil
    size = nil
  }

  /// Bounds the number of changes and their bytes.
  ///
  /// - Parameters:
  ///   - changes: The most changes, at least 1; 10,000 unless given.
  ///   - bytes: The most bytes of keys and values together, at least 1.
  ///   - size: About how many bytes a value has. It is called once for each change, in the task of its caller.
  public init(changes: Int = 10_000, bytes: Int, size: @escaping @Sendable (Value) -> Int) {
    self.changes = max(1, changes)
    self.bytes = max(1, bytes)
    self.size = size
  }

  /// How large a change is.
  func size(of change: Change<Value>) -> BatchSize {
    guard let size else { return BatchSize(changes: 1, bytes: 0) }
    return switch change {
    case .set(let key, let value):
      // The closure may say anything; sums must not overflow.
      BatchSize(changes: 1, bytes: key.count + min(max(0, size(value)), 1 << 40))
    case .remove(let key): BatchSize(changes: 1, bytes: key.count)
    case .removeAll: BatchSize(changes: 1, bytes: 0)
    }
  }

  /// How large a batch is.
  func size(of batch: ChangeBatch<Value>) -> BatchSize {
    // Without a closure there is nothing to look at: counting must not cost what the batch does.
    guard size != nil else { return BatchSize(changes: batch.count, bytes: 0) }
    var sum = BatchSize()
    for change in batch.changes { sum += size(of: change) }
    return sum
  }

  /// The bounds as a size.
  var limit: BatchSize {
    BatchSize(changes: changes, bytes: bytes ?? .max)
  }
}

/// How large some changes are.
struct BatchSize: Hashable, Sendable {
  /// How many changes there are.
  var changes: Int

  /// How many bytes their keys and values have, or 0 where they are not counted.
  var bytes: Int

  /// Makes a size, by default of nothing.
  init(changes: Int = 0, bytes: Int = 0) {
    self.changes = changes
    self.bytes = bytes
  }

  /// Whether it is within a limit.
  func fits(in limit: BatchSize) -> Bool {
    changes <= limit.changes && bytes <= limit.bytes
  }

  /// Whether it has come up to a limit, in changes or in bytes.
  func reaches(_ limit: BatchSize) -> Bool {
    changes >= limit.changes || bytes >= limit.bytes
  }

  static func + (left: BatchSize, right: BatchSize) -> BatchSize {
    BatchSize(changes: left.changes + right.changes, bytes: left.bytes + right.bytes)
  }

  static func += (left: inout BatchSize, right: BatchSize) {
    left = left + right
  }

  static func -= (left: inout BatchSize, right: BatchSize) {
    left = BatchSize(changes: left.changes - right.changes, bytes: left.bytes - right.bytes)
  }
}
