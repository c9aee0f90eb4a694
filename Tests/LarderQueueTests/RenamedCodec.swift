import Larder

/// A codec for bytes with the name of another codec, so its values may be invalid for that codec.
struct RenamedCodec: Codec {
  var name: String { "cbor" }
  var format: CodecFormat { .binary }

  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
    bytes += value
  }

  func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}
