/// A key that was acknowledged and must not be enqueued again for a while.
struct RememberedKey: Sendable, Hashable {
  /// The item that had it.
  var sequence: UInt64
  /// Until when it is remembered, in microseconds since 1970.
  var deadline: Int64
  /// The segment that says so.
  var segment: UInt32
}
