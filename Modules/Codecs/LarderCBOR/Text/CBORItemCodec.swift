public import Larder

/// Keeps CBOR as it is: it reads what ``CBORCodec`` writes, and the other way round.
public struct CBORItemCodec: Codec {
  /// Makes the codec.
  public init() {}

  /// `cbor`.
  public var name: String { "cbor" }

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// Appends the bytes.
  public func encode(_ value: CBORItem, into bytes: inout [UInt8]) {
    bytes.append(contentsOf: value.bytes)
  }

  /// Checks and copies the bytes.
  ///
  /// - Throws: `DecodingError`.
  public func decode(_ bytes: RawSpan) throws -> CBORItem {
    try CBORReader.read(bytes) { try CBORItem(from: &$0) }
  }
}

extension Codec where Self == CBORItemCodec {
  /// CBOR as it is; see ``CBORItemCodec``.
  public static var cborItem: CBORItemCodec { CBORItemCodec() }
}
