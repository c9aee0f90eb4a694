#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import Larder

/// A CBOR value as bytes that are checked but not decoded.
///
/// Use it to forward or show CBOR of any type: as readable text by ``diagnosticDescription``, and as JSON and back by
/// ``json()`` and ``init(_:)-(JSONText)``. As a field of a ``CBORConvertible`` type it preserves what another version
/// wrote there. Two items are equal if their bytes are equal.
public struct CBORItem: Sendable, Hashable {
  /// The bytes of one data item.
  public let bytes: [UInt8]

  /// Creates an item from its bytes.
  ///
  /// - Parameter bytes: CBOR (RFC 8949) in any form that the format allows.
  /// - Throws: `DecodingError` if the bytes are not one well-formed item, contain text that is not UTF-8, or nest more
  ///   than 512 levels deep.
  public init(_ bytes: some Sequence<UInt8>) throws {
    let bytes = Array(bytes)
    self = try bytes.withUnsafeBytes { bytes in
      try CBORReader.read(bytes.bytes) { try CBORItem(from: &$0) }
    }
  }

  /// Creates an item from JSON.
  ///
  /// The result of ``json()`` gives the same item in its preferred form.
  ///
  /// Numbers without a fraction and an exponent become integers. All other numbers become floating-point numbers.
  ///
  /// - Parameter json: Any JSON.
  /// - Throws: `JSONSyntaxError` if a number is too large, an object has a duplicate name, or a diagnostic notation
  ///   does not match the bytes beside it. `EncodingError` if the item would nest more than 512 levels deep.
  public init(_ json: JSONText) throws {
    var bytes: [UInt8] = []
    try CBORWriter.append(to: &bytes) { try JSONToCBOR.write(json, to: &$0) }
    self.bytes = bytes
  }

  /// Creates an item from bytes that are known to be one well-formed item.
  init(checked bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The item in diagnostic notation (RFC 8949, section 8), on one line.
  ///
  /// Bignums of up to 128 bits are shown as numbers.
  public var diagnosticDescription: String {
    bytes.withUnsafeBytes { CBORDiagnostics.text(of: $0) }
  }

  /// Returns the item as JSON.
  ///
  /// Integers, finite floating-point numbers, text, `true`, `false`, `null`, arrays, and maps whose keys are text have
  /// the same form in JSON. CBOR values that JSON cannot represent become tagged objects, which ``init(_:)-(JSONText)``
  /// reads back:
  ///
  /// - a byte string: `{"$base64":"AQID"}`
  /// - a tag: `{"$tag":1,"$value":1700000000}`
  /// - a map with a key that is not text, or with a duplicate key: `{"$map":[[1,"one"],[2,"two"]]}`
  /// - a floating-point number that is not finite: `{"$float":"NaN"}`, `Infinity` or `-Infinity`
  /// - `undefined` and other simple values: `{"$simple":23}`
  ///
  /// A map key that looks like one of these names gets another `$` in front. A NaN with a sign or a payload, and an
  /// item that would nest more than 512 levels deep as JSON, become their diagnostic notation and their bytes:
  /// `{"$diagnostic":"{[1]: {[2]: …}}","$base64":"oYEBoYEC…"}`.
  ///
  /// - Throws: `DecodingError`, but never for an item that was created by one of the public initializers.
  public func json() throws -> JSONText {
    let text = try bytes.withUnsafeBytes { bytes in
      var reader = CBORReader(bytes)
      var json: [UInt8] = []
      try CBORToJSON.append(&reader, to: &json)
      return json
    }
    do {
      return try JSONText(text)
    } catch is JSONSyntaxError {
      // A tagged object nests deeper than the item that it represents.
      return try JSONText(CBORToJSON.diagnostic(of: self))
    }
  }
}

extension CBORItem: CBORConvertible {
  /// Writes the item unchanged.
  public func write(to writer: inout CBORWriter) {
    bytes.withUnsafeBytes { writer.put(item: $0) }
  }

  /// Reads the next item unchanged.
  ///
  /// - Throws: `DecodingError` if the item is malformed or contains text that is not UTF-8.
  public init(from reader: inout CBORReader) throws {
    let start = reader.next
    try reader.skip()
    let bytes = UnsafeRawBufferPointer(start: start, count: reader.next - start)
    let end = reader.next
    reader.next = start
    try reader.checkText(upTo: end)
    reader.next = end
    self.init(checked: Array(bytes))
  }
}

extension CBORItem: Codable {
  /// Encodes the item itself with ``CBORCodec``, and its bytes as `Data` with other codecs.
  ///
  /// - Throws: An error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    if let handle = encoder as? EncodingHandle { return try handle.reach(for: self).encodeItem(self) }
    var container = encoder.singleValueContainer()
    try container.encode(Data(bytes))
  }

  /// Decodes the item itself with ``CBORCodec``, and its bytes from `Data` with other codecs.
  ///
  /// - Throws: `DecodingError` if the bytes are not one well-formed item.
  public init(from decoder: any Decoder) throws {
    if let handle = decoder as? DecodingHandle {
      self = try handle.decode(CBORItem.self)
      return
    }
    try self.init(try decoder.singleValueContainer().decode(Data.self))
  }
}

extension CBORItem: CustomStringConvertible {
  /// The item in diagnostic notation.
  public var description: String { diagnosticDescription }
}

extension CBORWriter {
  /// Writes an item that another writer encoded.
  fileprivate mutating func put(item: UnsafeRawBufferPointer) {
    guard let address = item.baseAddress else { return }
    reserve(item.count)
    next.copyMemory(from: address, byteCount: item.count)
    next += item.count
    itemCount += 1
  }
}

extension CBORReader {
  /// Checks the text of well-formed items.
  fileprivate mutating func checkText(upTo end: UnsafeRawPointer) throws {
    while next < end {
      let start = next
      if try readBreak() { continue }
      let head = try readHead()
      if head.major == .text {
        next = start
        _ = try readText()
      } else if head.major == .bytes, !head.isIndefinite {
        _ = try content(head)
      }
    }
  }
}

/// A codec that keeps CBOR as bytes.
///
/// It reads what ``CBORCodec`` writes, and the reverse.
public struct CBORItemCodec: Codec {
  /// Creates the codec.
  public init() {}

  /// `cbor`.
  public var name: String { "cbor" }

  /// `CodecFormat.binary`.
  public var format: CodecFormat { .binary }

  /// Appends the bytes.
  public func encode(_ value: CBORItem, into bytes: inout [UInt8], context: ValueContext) {
    bytes.append(contentsOf: value.bytes)
  }

  /// Checks and copies the bytes.
  ///
  /// - Throws: `DecodingError` if the bytes are not one well-formed item.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> CBORItem {
    try CBORReader.read(bytes) { try CBORItem(from: &$0) }
  }
}

extension Codec where Self == CBORItemCodec {
  /// A ``CBORItemCodec``, which keeps CBOR as bytes.
  public static var cborItem: CBORItemCodec { CBORItemCodec() }
}
