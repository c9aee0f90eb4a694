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
    if let wrapper = try wrapper(of: name) {
      return wrapper.wrapping(try codec(named: wrapper.baseName))
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
  /// - Throws: What reading the dictionaries threw, where values are compressed.
  func expiringCodec(named name: String) throws -> (any Codec<Expiring<JSONText>>)? {
    if let wrapper = try wrapper(of: name) {
      return try expiringCodec(named: wrapper.baseName).map { wrapper.wrapping($0) }
    }
    let suffix = ExpiringCodec<JSONTextCodec>.nameSuffix
    return name.hasSuffix(suffix) ? Self.expiring(try codec(named: String(name.dropLast(suffix.count)))) : nil
  }

  /// Whether the tool can read values of a codec, and shows more of them than their bytes.
  ///
  /// - Parameter name: What a store says it was written with.
  static func canRead(_ name: String) -> Bool {
    var name = name[...]
    let suffixes = [
      checksumSuffix, CompressedCodec<JSONTextCodec>.nameSuffix, ExpiringCodec<JSONTextCodec>.nameSuffix,
    ]
    while let suffix = suffixes.first(where: name.hasSuffix) { name = name.dropLast(suffix.count) }
    return ["json", "cbor"].contains(name)
  }

  /// A codec with a deadline before each value.
  static func expiring(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    base.expiring()
  }

  /// A codec of plain values, as one of values that have no deadline.
  static func withoutDeadlines(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    DeadlinelessCodec(base)
  }

  /// What a codec has behind the name of its base when it is checksummed.
  private static let checksumSuffix = "+crc32c"

  /// What stands around a codec, whatever its values are.
  private struct Wrapper {
    let baseName: String
    /// `nil` for checksums.
    let dictionaries: CompressionDictionaries?

    func wrapping<Value>(_ base: some Codec<Value>) -> any Codec<Value> {
      if let dictionaries { base.compressed(dictionaries: dictionaries) } else { base.checksummed() }
    }
  }

  private func wrapper(of name: String) throws -> Wrapper? {
    let compressionSuffix = CompressedCodec<JSONTextCodec>.nameSuffix
    if name.hasSuffix(Self.checksumSuffix) {
      return Wrapper(baseName: String(name.dropLast(Self.checksumSuffix.count)), dictionaries: nil)
    }
    guard name.hasSuffix(compressionSuffix) else { return nil }
    return Wrapper(baseName: String(name.dropLast(compressionSuffix.count)), dictionaries: try dictionaries.get())
  }
}
