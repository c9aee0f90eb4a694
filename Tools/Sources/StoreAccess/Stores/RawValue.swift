import Foundation
package import Larder

/// A conversion between values and the text or bytes of `--raw`.
package enum RawValue {
  /// The number of the CBOR tag of a byte string that is an array of `UInt8` (RFC 8746).
  private static let byteArrayTag = "64"

  /// Returns the text of a string, or the bytes of a CBOR byte string or of a value that the tool cannot interpret.
  ///
  /// Any other value stays JSON.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - codecName: The codec of the store.
  package static func bytes(of value: JSONText, codecName: String) throws -> [UInt8] {
    if let codec = opaqueCodec(codecName) {
      var bytes: [UInt8] = []
      try codec.encode(value, into: &bytes)
      return bytes
    }
    if hasByteStrings(codecName), let string = try byteString(in: value) { return string.bytes }
    return try value.string().map { Array($0.utf8) } ?? Array(value.bytes)
  }

  /// Returns the value for text or bytes.
  ///
  /// - Parameters:
  ///   - bytes: The text or bytes.
  ///   - codecName: The codec of the store.
  ///   - previous: The value to replace. Defaults to `nil`. If it is a CBOR byte string, the new value is one with the
  ///     same tag.
  /// - Throws: ``CommandFailure`` if the codec holds only text, and the bytes are not UTF-8.
  package static func value(of bytes: [UInt8], codecName: String, replacing previous: JSONText? = nil) throws
    -> JSONText
  {
    if let codec = opaqueCodec(codecName) { return try codec.decode(bytes.span.bytes) }
    let replaced = hasByteStrings(codecName) ? try previous.flatMap { try byteString(in: $0) } : nil
    if replaced == nil, let text = String(validating: bytes, as: UTF8.self) { return JSONText(string: text) }
    guard hasByteStrings(codecName) else {
      throw CommandFailure(
        .badData, "the value is not UTF-8, but the codec of the store, \(codecName), holds only text")
    }
    let mark = "{\"$base64\":\"\(Data(bytes).base64EncodedString())\"}"
    return try JSONText(replaced?.isTagged == true ? "{\"$tag\":\(byteArrayTag),\"$value\":\(mark)}" : mark)
  }

  /// A Boolean value that indicates whether a codec has byte strings beside other values, as CBOR does.
  package static func hasByteStrings(_ codecName: String) -> Bool {
    CodecName(codecName).base == CBORTextCodec().name
  }

  /// Returns the bytes of a CBOR byte string, and whether it has the tag of an array of `UInt8`, or `nil` for any other
  /// value.
  ///
  /// - Parameter value: The value as `CBORItem` shows it, where a byte string is a tagged object.
  private static func byteString(in value: JSONText) throws -> (bytes: [UInt8], isTagged: Bool)? {
    guard let members = try value.members() else { return nil }
    switch members.map(\.name) {
    case ["$base64"]:
      return try members[0].value.string().flatMap { Data(base64Encoded: $0) }.map { (Array($0), false) }
    case ["$tag", "$value"] where members[0].value.description == byteArrayTag:
      guard let inner = try byteString(in: members[1].value), !inner.isTagged else { return nil }
      return (inner.bytes, true)
    default:
      return nil
    }
  }

  /// Returns the codec for the bytes of values that the tool cannot interpret, or `nil` if it can.
  private static func opaqueCodec(_ codecName: String) -> OpaqueTextCodec? {
    CodecName(codecName).isReadable ? nil : OpaqueTextCodec(name: codecName)
  }
}
