/// Where the payload of an item lies in the log.
struct QueuePlace: Sendable, Hashable {
  /// The number of the segment.
  var segment: UInt32
  /// Where its checksum begins in that file; the payload follows.
  var offset: UInt32
  /// The bytes of the payload.
  var length: UInt32
}
