/// What a segment still holds that is needed.
struct SegmentUsage: Sendable, Hashable {
  /// Items and remembered keys.
  var count = 0
  /// The bytes of the items' keys and payloads.
  var bytes = 0
}
