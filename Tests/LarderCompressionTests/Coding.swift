#if Compression
import Larder
import LarderCompression
import Testing

/// Encodes and decodes values without a store.
enum Coding {
  /// Encodes a value.
  static func bytes<Value>(of value: Value, by codec: some Codec<Value>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  /// Decodes a value.
  static func value<Value>(of bytes: [UInt8], by codec: some Codec<Value>) throws -> Value {
    try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
  }
}

extension ZlibDeflater {
  /// Compresses a piece of data and appends the result to an array.
  mutating func deflate(_ input: UnsafeRawBufferPointer, appendingTo bytes: inout [UInt8]) throws {
    // Deflate grows data that it cannot compress by less than this.
    var output = [UInt8](repeating: 0, count: input.count + input.count / 100 + 64)
    let count = try output.withUnsafeMutableBytes { try deflate(input, into: $0) }
    bytes += output.prefix(try #require(count))
  }
}
#endif
