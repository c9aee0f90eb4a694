/// How large some changes are.
struct BatchSize: Hashable, Sendable {
  /// How many changes there are.
  var changes = 0

  /// How many bytes their keys and values have, or 0 where they are not counted.
  var bytes = 0

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
