import Larder

/// Keeps bytes as they are, under the name of another codec: what it writes may be no value of that one.
struct RenamedCodec: Codec {
  var name: String { "cbor" }
  var format: CodecFormat { .binary }

  func encode(_ value: [UInt8], into bytes: inout [UInt8]) {
    bytes += value
  }

  func decode(_ bytes: RawSpan) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}
