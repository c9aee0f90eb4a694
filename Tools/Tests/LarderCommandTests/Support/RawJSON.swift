import Larder

/// A codec for any bytes, which claims that they are JSON.
struct RawJSON: Codec {
  var name: String { "json" }
  var format: CodecFormat { .json }

  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
    bytes += value
  }

  func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}
