import Larder
import LarderCompression
import LarderExpiry

/// The codecs by which the tool shows values as JSON.
struct ValueCodecs {
  /// The dictionaries that lie beside the store, or why they cannot be read: it matters only where values are compressed.
  var dictionaries: Result<CompressionDictionaries, any Error> = .success(CompressionDictionaries())

  /// The codec of a name.
  ///
  /// - Parameter name: What a store says it was written with.
  /// - Returns: The codec; for a name that the tool does not know, one that shows the bytes.
  /// - Throws: What reading the dictionaries threw, where values are compressed.
  func codec(named name: String) throws -> any Codec<JSONText> {
    let parts = CodecName(name)
    // A codec with deadlines is one of other values: see below.
    guard !parts.isExpiring else { return OpaqueTextCodec(name: name) }
    return try wrap(plainCodec(named: parts.base), in: parts.transforms)
  }

  /// The codec of a name that says that values have deadlines, like `json+expiring`; `nil` for any other name.
  ///
  /// - Parameter name: What a store says it was written with.
  /// - Throws: What reading the dictionaries threw, where values are compressed.
  func expiringCodec(named name: String) throws -> (any Codec<Expiring<JSONText>>)? {
    let parts = CodecName(name)
    guard let place = parts.transforms.firstIndex(of: .expiry) else { return nil }
    let plain = try wrap(plainCodec(named: parts.base), in: parts.transforms[..<place])
    return try wrap(Self.expiring(plain), in: parts.transforms[(place + 1)...])
  }

  /// A codec with a deadline before each value.
  static func expiring(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    base.expiring()
  }

  /// A codec of plain values, as one of values that have no deadline.
  static func withoutDeadlines(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    DeadlinelessCodec(base)
  }

  private func plainCodec(named name: String) -> any Codec<JSONText> {
    switch name {
    case "json": JSONTextCodec()
    case "cbor": CBORTextCodec()
    default: OpaqueTextCodec(name: name)
    }
  }

  /// Puts checksums and compression around a codec, whatever its values are.
  ///
  /// - Throws: What reading the dictionaries threw, where values are compressed.
  private func wrap<Value>(
    _ base: any Codec<Value>, in transforms: some Sequence<CodecName.Transform>
  ) throws -> any Codec<Value> {
    try transforms.reduce(base) { codec, transform in
      switch transform {
      case .checksum: Self.checksummed(codec)
      case .compression: Self.compressed(codec, with: try dictionaries.get())
      // Makes a codec of other values, so the callers put it around.
      case .expiry: codec
      }
    }
  }

  private static func checksummed<Value>(_ base: some Codec<Value>) -> any Codec<Value> {
    base.checksummed()
  }

  private static func compressed<Value>(
    _ base: some Codec<Value>, with dictionaries: CompressionDictionaries
  ) -> any Codec<Value> {
    base.compressed(dictionaries: dictionaries)
  }
}
