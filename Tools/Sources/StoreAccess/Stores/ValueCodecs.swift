import Foundation
package import Larder
import LarderCBOR
package import LarderCompression
package import LarderCrypto
package import LarderExpiry

/// The codecs with which the tool shows values as JSON.
package struct ValueCodecs {
  /// The dictionaries of compressed values.
  package let dictionaries: CompressionDictionaries

  /// The keys of encrypted values, or `nil` if the caller gave none.
  package let keys: ValueKeys?

  /// Creates the codecs of a store.
  ///
  /// - Parameters:
  ///   - dictionaries: The dictionaries of compressed values. Defaults to no dictionaries.
  ///   - keys: The keys of encrypted values. Defaults to `nil`, for none.
  package init(dictionaries: CompressionDictionaries = CompressionDictionaries(), keys: ValueKeys? = nil) {
    (self.dictionaries, self.keys) = (dictionaries, keys)
  }

  /// Returns the codec with a name, without the deadlines of the values.
  ///
  /// If the name stands for values with deadlines, the codec ignores them.
  ///
  /// - Parameter name: The name that the store recorded.
  /// - Returns: The codec; for an unknown name, a codec that shows the bytes.
  package func codec(named name: String) -> any Codec<JSONText> {
    if let expiring = expiringCodec(named: name) { return DeadlineIgnoringCodec(base: expiring) }
    let parts = CodecName(name)
    return wrap(plainCodec(parts), in: parts.transforms)
  }

  /// Returns the codec with a name that stands for values with deadlines, such as `json+expiring`, or `nil` for any other
  /// name.
  ///
  /// - Parameter name: The name that the store recorded.
  package func expiringCodec(named name: String) -> (any Codec<Expiring<JSONText>>)? {
    let parts = CodecName(name)
    guard let place = parts.transforms.firstIndex(of: .expiry) else { return nil }
    let plain = wrap(plainCodec(parts), in: parts.transforms[..<place])
    return wrap(Self.expiring(plain), in: parts.transforms[(place + 1)...])
  }

  /// Returns the codec of a store of bytes, or `nil` if the name is not `raw` with any transforms but deadlines.
  ///
  /// - Parameter name: The name that the store recorded.
  package func bytesCodec(named name: String) -> (any Codec<[UInt8]>)? {
    let parts = CodecName(name)
    guard parts.base == RawCodec().name, !parts.isExpiring else { return nil }
    return wrap(RawCodec(), in: parts.transforms)
  }

  /// Returns the codec for the bytes that are encrypted, whatever they encode.
  ///
  /// It encrypts with AES-GCM.
  ///
  /// - Parameters:
  ///   - name: The name that the store recorded.
  ///   - url: The URL of the store, for errors.
  /// - Throws: ``CommandFailure`` if the values are not encrypted, or have a deadline outside of the encryption.
  package func decryptingCodec(named name: String, of url: StoreURL) throws -> any Codec<[UInt8]> {
    let parts = CodecName(name)
    guard let place = parts.transforms.lastIndex(of: .encryption) else {
      throw CommandFailure(.usage, "the values of \(url) are not encrypted")
    }
    let outer = parts.transforms[place...]
    guard !outer.contains(.expiry) else {
      throw CommandFailure(
        .usage, "the deadlines in \(url) are outside of the encryption",
        advice: "Call reencrypt() in a program that has the codec.")
    }
    let inner = String(name.dropLast(outer.map(\.suffix.count).reduce(0, +)))
    return wrap(BytesCodec(name: inner), in: outer)
  }

  /// A codec for the stored bytes of values, with or without deadlines.
  package enum StoredCodec {
    case plain(any Codec<[UInt8]>)
    case expiring(any Codec<Expiring<[UInt8]>>)
  }

  /// Returns the codec that decodes no more of a value than its deadline, so the rest can be moved as it is stored.
  ///
  /// Transforms outside of an encryption are decoded, too. A deadline inside of one is part of the bytes.
  ///
  /// - Parameter name: The name that the store recorded.
  /// - Returns: The codec, and the name of the codec that encoded the bytes.
  package func storedCodec(of name: CodecName) -> (codec: StoredCodec, bytesName: CodecName) {
    let transforms = name.transforms
    let sealed = transforms.lastIndex(of: .encryption).map { $0 + 1 }
    let expiry = transforms[(sealed ?? 0)...].firstIndex(of: .expiry)
    let bytesName = name.withTransforms(upTo: expiry ?? sealed ?? transforms.endIndex)
    let bytes = BytesCodec(
      name: "\(bytesName)", format: codec(named: "\(bytesName)").format, adoptedNames: bytesName.olderNames)
    let outer = transforms[bytesName.transforms.count...]
    guard expiry != nil else { return (.plain(wrap(bytes, in: outer)), bytesName) }
    // The deadline is directly around the bytes.
    return (.expiring(wrap(Self.expiring(bytes), in: outer.dropFirst())), bytesName)
  }

  private func plainCodec(_ name: CodecName) -> any Codec<JSONText> {
    let codec: any Codec<JSONText> =
      switch name.base {
      case "json": JSONTextCodec()
      case "cbor": CBORTextCodec()
      default: OpaqueTextCodec(name: name.base)
      }
    return name.version.map { VersionedTextCodec(base: codec, newest: $0) } ?? codec
  }

  /// Wraps a codec in checksums, compression and encryption.
  private func wrap<Value>(
    _ base: any Codec<Value>, in transforms: some Sequence<CodecName.Transform>
  ) -> any Codec<Value> {
    transforms.reduce(base) { codec, transform in
      switch transform {
      case .checksum: Self.checksummed(codec)
      case .compression: Self.compressed(codec, with: dictionaries)
      case .encryption: Self.encrypted(codec, with: keys)
      // It changes the type of the values, so the caller applies it.
      case .expiry: codec
      // It is the innermost one, and already applied.
      case .versions: codec
      }
    }
  }

  private static func expiring<Value>(_ base: some Codec<Value>) -> any Codec<Expiring<Value>> {
    base.expiring()
  }

  private static func checksummed<Value>(_ base: some Codec<Value>) -> any Codec<Value> {
    base.checksummed()
  }

  private static func compressed<Value>(
    _ base: some Codec<Value>, with dictionaries: CompressionDictionaries
  ) -> any Codec<Value> {
    base.compressed(dictionaries: dictionaries)
  }

  private static func encrypted<Value>(_ base: some Codec<Value>, with keys: ValueKeys?) -> any Codec<Value> {
    guard let keys else { return LockedCodec<Value>(name: base.name + EncryptedCodec<JSONTextCodec>.nameSuffix) }
    return base.encrypted(with: keys.ring, purpose: keys.purpose)
  }
}

/// A codec that stores JSON as CBOR.
package struct CBORTextCodec: Codec {
  package var name: String { "cbor" }
  package var format: CodecFormat { .cbor }

  package func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    bytes += try CBORItem(value).bytes
  }

  package func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    try CBORCodec<CBORItem>().decode(bytes).json()
  }
}

/// The error of a value with a newer version than the store has.
package struct NewerValue: Error, CustomStringConvertible {
  package let version: Int
  package let newest: Int

  package var description: String {
    "the value has version \(version), but the store has only versions up to \(newest)"
  }
}

/// A codec that shows values with their versions, as in `{"$version":3,"$value":{"name":"Ada"}}`.
///
/// A value of version 0 is shown as it is.
package struct VersionedTextCodec: Codec {
  package let base: any Codec<JSONText>

  /// The newest version, which the store records.
  package let newest: Int

  package var name: String { name(of: newest) }
  package var adoptedNames: [String] { (1..<newest).map(name(of:)) }

  private func name(of version: Int) -> String {
    base.name + VersionedCodec<JSONTextCodec>.nameSuffix(ofVersion: version)
  }

  package var format: CodecFormat { base.format }
  package var encryptsValues: Bool { base.encryptsValues }

  package func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    let frame = try VersionFrame(of: value.bytes.span.bytes, format: .json)
    guard frame.version > 0 else { return try base.encode(value, into: &bytes, context: context) }
    // Older programs read and write such a store.
    guard frame.version <= newest else { throw NewerValue(version: frame.version, newest: newest) }
    try VersionFrame.append(version: frame.version, format: format, to: &bytes) { bytes in
      try base.encode(JSONText(value.bytes[frame.value]), into: &bytes, context: context)
    }
  }

  package func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    let frame = try VersionFrame(of: bytes, format: format)
    let value = try base.decode(bytes.extracting(frame.value), context: context)
    guard frame.version > 0 else { return value }
    var text: [UInt8] = []
    VersionFrame.append(version: frame.version, format: .json, to: &text) { $0 += value.bytes }
    return try JSONText(text)
  }
}

/// The keys of encrypted values, and the purpose that the values are bound to.
package struct ValueKeys {
  package let ring: KeyRing
  package let purpose: String
}

/// A codec for encrypted values without their keys.
///
/// A store with this codec opens, lists its keys and counts them, but reads and writes no value.
package struct LockedCodec<Value: Sendable>: Codec {
  package let name: String
  package var format: CodecFormat { .cbor }

  package func encode(_ value: Value, into bytes: inout [UInt8], context: ValueContext) throws {
    throw missingKeys
  }

  package func decode(_ bytes: RawSpan, context: ValueContext) throws -> Value {
    throw missingKeys
  }

  private var missingKeys: KeyRingError {
    KeyRingError(.unavailable, message: "the values are encrypted")
  }
}

/// A codec for the bytes of values, which claims the name of another codec.
package struct BytesCodec: Codec {
  package let name: String
  /// The format of the other codec.
  package let format: CodecFormat
  /// The names of older versions of the other codec.
  package let adoptedNames: [String]

  /// Creates a codec.
  ///
  /// - Parameters:
  ///   - name: The name of the other codec.
  ///   - format: The format of the other codec. Defaults to ``CodecFormat/binary``.
  ///   - adoptedNames: The names of older versions of the other codec. Defaults to an empty list.
  package init(name: String, format: CodecFormat = .binary, adoptedNames: [String] = []) {
    (self.name, self.format, self.adoptedNames) = (name, format, adoptedNames)
  }

  package func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
    bytes += value
  }

  package func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}

/// A codec for bytes that the tool cannot interpret, including those of the codec `raw`, as `{"$base64":"AQID"}`.
package struct OpaqueTextCodec: Codec {
  /// The error of encoding a value that is not bytes.
  package struct NoBytes: RedactedError, CustomStringConvertible {
    package let codecName: String

    package var description: String {
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

  package let name: String
  package var format: CodecFormat { .binary }

  package func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    do {
      bytes += try JSONDecoder().decode(Bytes.self, from: Data(value.bytes)).base64
    } catch {
      throw NoBytes(codecName: name)
    }
  }

  package func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    let base64 = bytes.withUnsafeBytes { Data($0) }.base64EncodedString()
    return try JSONText("{\"$base64\":\"\(base64)\"}")
  }
}

/// A codec that ignores the deadlines of values, and writes values without one.
package struct DeadlineIgnoringCodec: Codec {
  package let base: any Codec<Expiring<JSONText>>

  package var name: String { base.name }
  package var format: CodecFormat { base.format }
  package var encryptsValues: Bool { base.encryptsValues }

  package func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    try base.encode(Expiring(value), into: &bytes, context: context)
  }

  package func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    try base.decode(bytes, context: context).value
  }
}
