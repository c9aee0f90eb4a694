#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import Larder

/// A CBOR value as bytes, checked but not decoded.
///
/// It is for programs that hand CBOR on or show it, whatever types it was written from: as text for people by
/// ``diagnosticDescription``, and as JSON and back by ``json()`` and ``init(_:)-(JSONText)``. As a field of a
/// ``CBORConvertible`` type it keeps what another version wrote there. Two items are equal where they are the same byte for
/// byte.
public struct CBORItem: Sendable, Hashable {
  /// The bytes of one data item.
  public let bytes: [UInt8]

  /// Takes the bytes of one item.
  ///
  /// - Parameter bytes: CBOR (RFC 8949) in any form that it allows.
  /// - Throws: `DecodingError` where it is not one well-formed item, has text that is not UTF-8, or nests more than 512
  ///   deep.
  public init(_ bytes: some Sequence<UInt8>) throws {
    let bytes = Array(bytes)
    self = try bytes.withUnsafeBytes { bytes in
      try CBORReader.read(bytes.bytes) { try CBORItem(from: &$0) }
    }
  }

  /// Makes an item of JSON: of what ``json()`` gives, the same item in its preferred form.
  ///
  /// Numbers without a fraction and an exponent become integers, all others floating-point numbers.
  ///
  /// - Parameter json: Any JSON.
  /// - Throws: ``JSONSyntaxError`` where a number is too large, an object has a name twice, or a diagnostic notation is
  ///   not that of the bytes beside it; `EncodingError` where the item would nest more than 512 deep.
  public init(_ json: JSONText) throws {
    var bytes: [UInt8] = []
    try CBORWriter.append(to: &bytes) { try JSONToCBOR.write(json, to: &$0) }
    self.bytes = bytes
  }

  /// Takes bytes that are one item.
  init(checked bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The item in diagnostic notation (RFC 8949, section 8), in one line.
  ///
  /// Integers of up to 128 bits that are bignums are shown as numbers.
  public var diagnosticDescription: String {
    bytes.withUnsafeBytes { CBORDiagnostics.text(of: $0) }
  }

  /// The item as JSON.
  ///
  /// Integers, finite floating-point numbers, text, `true`, `false`, `null`, arrays, and maps whose keys are text are what
  /// they are in JSON. All else is an object with a mark, which ``init(_:)-(JSONText)`` knows:
  ///
  /// - a byte string: `{"$base64":"AQID"}`
  /// - a tag: `{"$tag":1,"$value":1700000000}`
  /// - a map with a key that is no text, or with a key twice: `{"$map":[[1,"one"],[2,"two"]]}`
  /// - a floating-point number that is not finite: `{"$float":"NaN"}`, `Infinity` or `-Infinity`
  /// - `undefined` and other simple values: `{"$simple":23}`
  ///
  /// A key of a map that is such a mark itself gets another `$` in front. Of a NaN with a sign or a payload, and of an item
  /// that would nest more than 512 deep as JSON, there are the diagnostic notation and the bytes:
  /// `{"$diagnostic":"{[1]: {[2]: …}}","$base64":"oYEBoYEC…"}`.
  ///
  /// - Throws: `DecodingError`; never for an item that this type has checked, which is all there is.
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
      // A mark nests deeper than what it stands for.
      return try JSONText(CBORToJSON.diagnostic(of: self))
    }
  }
}

extension CBORItem: CBORConvertible {
  /// Writes the item as it is.
  public func write(to writer: inout CBORWriter) {
    bytes.withUnsafeBytes { writer.put(item: $0) }
  }

  /// Takes the next item as it is.
  ///
  /// - Throws: `DecodingError` where it is not well-formed or has text that is not UTF-8.
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
  /// Encodes the bytes, as `Data`, for codecs other than CBOR's; the item itself for that one.
  ///
  /// - Throws: What the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    if let handle = encoder as? EncodingHandle { return try handle.reach(for: self).encodeItem(self) }
    var container = encoder.singleValueContainer()
    try container.encode(Data(bytes))
  }

  /// Decodes the bytes of an item from `Data`, as other codecs than CBOR's have them; takes the item itself from that one.
  ///
  /// - Throws: `DecodingError` where they are no well-formed item.
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
  /// Writes an item that somebody else wrote.
  fileprivate mutating func put(item: UnsafeRawBufferPointer) {
    guard let address = item.baseAddress else { return }
    reserve(item.count)
    next.copyMemory(from: address, byteCount: item.count)
    next += item.count
    itemCount += 1
  }
}

extension CBORReader {
  /// Checks the text in items that are well-formed.
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
