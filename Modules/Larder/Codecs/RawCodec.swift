/// Keeps bytes as they are.
public struct RawCodec: Codec {
  /// Makes the codec.
  public init() {}

  /// `raw`.
  public var name: String { "raw" }

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// Appends the bytes.
  public func encode(_ value: [UInt8], into bytes: inout [UInt8]) {
    value.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
  }

  /// Copies the bytes.
  public func decode(_ bytes: RawSpan) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}

extension Codec where Self == RawCodec {
  /// Bytes as they are; see ``RawCodec``.
  public static var raw: RawCodec { RawCodec() }
}
