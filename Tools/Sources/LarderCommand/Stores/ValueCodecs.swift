import Foundation
import Larder
import LarderCBOR
import LarderCompression
import LarderExpiry

/// The codecs with which the tool shows values as JSON.
struct ValueCodecs {
  /// The dictionaries beside the store, or the error of reading them, which is thrown only if values are compressed.
  var dictionaries: Result<CompressionDictionaries, any Error> = .success(CompressionDictionaries())

  /// Returns the codec with a name.
  ///
  /// - Parameter name: The name that the store recorded.
  /// - Returns: The codec; for an unknown name, a codec that shows the bytes.
  /// - Throws: The error of reading the dictionaries, if values are compressed.
  func codec(named name: String) throws -> any Codec<JSONText> {
    let parts = CodecName(name)
    // A codec with deadlines has another type of values, see `expiringCodec(named:)`.
    guard !parts.isExpiring else { return OpaqueTextCodec(name: name) }
    return try wrap(plainCodec(named: parts.base), in: parts.transforms)
  }

  /// Returns the codec with a name that stands for values with deadlines, such as `json+expiring`, or `nil` for any other
  /// name.
  ///
  /// - Parameter name: The name that the store recorded.
  /// - Throws: The error of reading the dictionaries, if values are compressed.
  func expiringCodec(named name: String) throws -> (any Codec<Expiring<JSONText>>)? {
    let parts = CodecName(name)
    guard let place = parts.transforms.firstIndex(of: .expiry) else { return nil }
    let plain = try wrap(plainCodec(named: parts.base), in: parts.transforms[..<place])
    return try wrap(Self.expiring(plain), in: parts.transforms[(place + 1)...])
  }

  /// Returns a codec that stores a deadline with each value.
  static func expiring(_ base: some Codec<JSONText>) -> any Codec<Expiring<JSONText>> {
    base.expiring()
  }

  /// Returns a codec of plain values as a codec of values without deadlines.
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

  /// Wraps a codec in checksums and compression.
  ///
  /// - Throws: The error of reading the dictionaries, if values are compressed.
  private func wrap<Value>(
    _ base: any Codec<Value>, in transforms: some Sequence<CodecName.Transform>
  ) throws -> any Codec<Value> {
    try transforms.reduce(base) { codec, transform in
      switch transform {
      case .checksum: Self.checksummed(codec)
      case .compression: Self.compressed(codec, with: try dictionaries.get())
      // It changes the type of the values, so the callers apply it.
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

/// A codec that stores JSON as CBOR.
struct CBORTextCodec: Codec {
  var name: String { "cbor" }
  var format: CodecFormat { .binary }

  func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    bytes += try CBORItem(value).bytes
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    try CBORCodec<CBORItem>().decode(bytes).json()
  }
}

/// A codec for bytes that the tool cannot interpret, including those of the codec `raw`, as `{"$base64":"AQID"}`.
struct OpaqueTextCodec: Codec {
  /// The error of encoding a value that is not bytes.
  struct NoBytes: ValueFreeError, CustomStringConvertible {
    let codecName: String

    var description: String {
      "values of the codec \(codecName) must be bytes, as in {\"$base64\":\"AQID\"}"
    }
  }

  /// Bytes as JSON.
  private struct Bytes: Codable {
    enum CodingKeys: String, CodingKey {
      case base64 = "$base64"
    }

    var base64: Data
  }

  let name: String
  var format: CodecFormat { .binary }

  func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    do {
      bytes += try JSONDecoder().decode(Bytes.self, from: Data(value.bytes)).base64
    } catch {
      throw NoBytes(codecName: name)
    }
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    let base64 = bytes.withUnsafeBytes { Data($0) }.base64EncodedString()
    return try JSONText("{\"$base64\":\"\(base64)\"}")
  }
}

/// A codec that presents plain values as values without deadlines.
///
/// A store is opened for one type of values, and says only during the opening whether its values expire. That type
/// therefore has room for a deadline in any case.
struct DeadlinelessCodec<Base: Codec>: Codec {
  /// The error of encoding a value that has a deadline.
  struct DeadlineError: ValueFreeError, CustomStringConvertible {
    var description: String { "the value has a deadline, but the store holds values that do not expire" }
  }

  let base: Base

  init(_ base: Base) {
    self.base = base
  }

  var name: String { base.name }
  var format: CodecFormat { base.format }

  func encode(_ expiring: Expiring<Base.Value>, into bytes: inout [UInt8], context: ValueContext) throws {
    guard expiring.deadline == nil else { throw DeadlineError() }
    try base.encode(expiring.value, into: &bytes, context: context)
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> Expiring<Base.Value> {
    Expiring(try base.decode(bytes, context: context))
  }
}
