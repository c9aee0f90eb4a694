import Larder

/// Any bytes, in a store that says that they are JSON.
struct RawJSON: Codec {
  var name: String { "json" }
  var format: CodecFormat { .json }

  func encode(_ value: [UInt8], into bytes: inout [UInt8]) {
    bytes += value
  }

  func decode(_ bytes: RawSpan) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}
