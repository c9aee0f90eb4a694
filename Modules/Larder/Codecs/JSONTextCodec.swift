/// Keeps JSON text as it is: it reads what ``JSONCodec`` writes, and the other way round.
public struct JSONTextCodec: Codec {
  /// Makes the codec.
  public init() {}

  /// `json`.
  public var name: String { "json" }

  /// ``CodecFormat/json``.
  public var format: CodecFormat { .json }

  /// Appends the text.
  public func encode(_ value: JSONText, into bytes: inout [UInt8]) {
    bytes.append(contentsOf: value.bytes)
  }

  /// Checks and copies the text.
  ///
  /// - Throws: ``JSONSyntaxError``.
  public func decode(_ bytes: RawSpan) throws -> JSONText {
    try bytes.withUnsafeBytes { try JSONText($0) }
  }
}

extension Codec where Self == JSONTextCodec {
  /// JSON text as it is; see ``JSONTextCodec``.
  public static var jsonText: JSONTextCodec { JSONTextCodec() }
}
