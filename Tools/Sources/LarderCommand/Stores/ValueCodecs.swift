import Larder

/// The codecs by which the tool shows values as JSON.
enum ValueCodecs {
  /// The codec of a name.
  ///
  /// - Parameter name: What a store says it was written with.
  /// - Returns: The codec; for a name that the tool does not know, one that shows the bytes.
  static func codec(named name: String) -> any Codec<JSONText> {
    if name.hasSuffix(checksumSuffix) {
      return checksummed(codec(named: String(name.dropLast(checksumSuffix.count))))
    }
    return switch name {
    case "json": JSONTextCodec()
    case "cbor": CBORTextCodec()
    default: OpaqueTextCodec(name: name)
    }
  }

  /// What a codec with a checksum has behind the name of its base.
  private static let checksumSuffix = "+crc32c"

  private static func checksummed(_ base: some Codec<JSONText>) -> any Codec<JSONText> {
    base.checksummed()
  }
}
