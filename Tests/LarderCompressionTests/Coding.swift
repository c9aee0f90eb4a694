#if Compression
import Larder

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
#endif
