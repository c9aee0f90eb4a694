import Larder

/// Values as text or bytes instead of JSON, for `--raw`.
enum RawValue {
  /// What a value is without JSON: the text of a string, the bytes of a store that keeps bytes; anything else stays JSON.
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
    return try value.string().map { Array($0.utf8) } ?? Array(value.bytes)
  }

  /// The value for text or bytes.
  ///
  /// - Parameters:
  ///   - bytes: What it is without JSON.
  ///   - codecName: The codec of the store; `nil` for none.
  /// - Throws: ``CommandFailure`` where the store keeps text, and this is none.
  static func value(of bytes: [UInt8], codecName: String?) throws -> JSONText {
    if let codec = opaqueCodec(codecName) { return try codec.decode(bytes.span.bytes) }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw CommandFailure(
        .badData,
        "the value is not UTF-8, and the store keeps \(codecName ?? "JSON"), which has no bytes of another kind")
    }
    return JSONText(string: text)
  }

  /// What shows the bytes of a store whose values the tool cannot read otherwise; `nil` where it can.
  private static func opaqueCodec(_ codecName: String?) -> OpaqueTextCodec? {
    guard let codecName, !CodecName(codecName).isReadable else { return nil }
    return OpaqueTextCodec(name: codecName)
  }
}
