/// How large some changes are.
@usableFromInline
struct BatchSize: Hashable, Sendable {
  /// How many changes there are.
  @usableFromInline
  var changes: Int

  /// How many bytes their keys and values have, or 0 where they are not counted.
  @usableFromInline
  var bytes: Int

  /// Makes a size; nothing unless said.
  @inlinable
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

  @usableFromInline
  static func + (left: BatchSize, right: BatchSize) -> BatchSize {
    BatchSize(changes: left.changes + right.changes, bytes: left.bytes + right.bytes)
  }

  @usableFromInline
  static func += (left: inout BatchSize, right: BatchSize) {
    left = left + right
  }

  static func -= (left: inout BatchSize, right: BatchSize) {
    left = BatchSize(changes: left.changes - right.changes, bytes: left.bytes - right.bytes)
  }
}
