import Foundation
import Larder

/// Values as text or bytes instead of JSON, for `--raw`.
enum RawValue {
  /// The number of the CBOR tag of a byte string that is an array of `UInt8` (RFC 8746).
  private static let byteArrayTag = "64"

  /// What a value is without JSON: the text of a string, the bytes of a CBOR byte string or of a store that keeps bytes;
  /// anything else stays JSON.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - codecName: The codec of the store; `nil` for none.
  static func bytes(of value: JSONText, codecName: String?) throws -> [UInt8] {
    if let codec = opaqueCodec(codecName) {
      var bytes: [UInt8] = []
      try codec.encode(value, into: &bytes)
      return bytes
    }
    if hasByteStrings(codecName), let string = try byteString(in: value) { return string.bytes }
    return try value.string().map { Array($0.utf8) } ?? Array(value.bytes)
  }

  /// The value for text or bytes.
  ///
  /// - Parameters:
  ///   - bytes: What it is without JSON.
  ///   - codecName: The codec of the store; `nil` for none.
  ///   - previous: The value that it replaces; the new one is a CBOR byte string if that one is, with the same tag.
  /// - Throws: ``CommandFailure`` if the store keeps only text, and this is none.
  static func value(of bytes: [UInt8], codecName: String?, replacing previous: JSONText? = nil) throws -> JSONText {
    if let codec = opaqueCodec(codecName) { return try codec.decode(bytes.span.bytes) }
    let replaced = hasByteStrings(codecName) ? try previous.flatMap { try byteString(in: $0) } : nil
    if replaced == nil, let text = String(validating: bytes, as: UTF8.self) { return JSONText(string: text) }
    guard hasByteStrings(codecName) else {
      throw CommandFailure(
        .badData, "the value is not UTF-8, and the codec of the store, \(codecName ?? "json"), keeps only text")
    }
    let mark = "{\"$base64\":\"\(Data(bytes).base64EncodedString())\"}"
    return try JSONText(replaced?.isTagged == true ? "{\"$tag\":\(byteArrayTag),\"$value\":\(mark)}" : mark)
  }

  /// Whether values of a codec can be byte strings beside other kinds, as those of CBOR can.
  static func hasByteStrings(_ codecName: String?) -> Bool {
    codecName.map { CodecName($0).base == CBORTextCodec().name } ?? false
  }

  /// The bytes of a CBOR byte string, and whether it has the tag of an array of `UInt8`; `nil` for any other value.
  ///
  /// - Parameter value: The value as `CBORItem` shows it: a byte string is an object with a mark.
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

  /// What shows the bytes of a store whose values the tool cannot read otherwise; `nil` where it can.
  private static func opaqueCodec(_ codecName: String?) -> OpaqueTextCodec? {
    guard let codecName, !CodecName(codecName).isReadable else { return nil }
    return OpaqueTextCodec(name: codecName)
  }
}
