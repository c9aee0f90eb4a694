/// What the bytes of a codec are, for stores that show them.
public enum CodecFormat: Sendable, Hashable {
  /// One JSON value as text in UTF-8 (RFC 8259).
  case json
  /// Any bytes.
  case binary
}
