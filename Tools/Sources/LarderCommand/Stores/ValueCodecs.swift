import Larder
import LarderExpiry

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

  /// The codec of a name that says that values have deadlines, like `json+expiring`; `nil` for any other name.
  ///
  /// - Parameter name: What a store says it was written with.
  static func expiringCodec(named name: String) -> (any Codec<Expiring<JSONText>>)? {
    if name.hasSuffix(checksumSuffix) {
      return expiringCodec(named: String(name.dropLast(checksumSuffix.count))).map { checksummed($0) }
    }
    let suffix = ExpiringCodec<JSONTextCodec>.nameSuffix
    return name.hasSuffix(suffix) ? expiring(codec(named: String(name.dropLast(suffix.count)))) : nil
  }

  /// A codec with a deadline before each value.
  static func expiring(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    base.expiring()
  }

  /// A codec of plain values, as one of values that have no deadline.
  static func withoutDeadlines(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    DeadlinelessCodec(base)
  }

  /// What a codec with a checksum has behind the name of its base.
  private static let checksumSuffix = "+crc32c"

  private static func checksummed<Value>(_ base: some Codec<Value>) -> any Codec<Value> {
    base.checksummed()
  }
}
