#if Compression
import Larder

/// Codecs outside of any store.
enum Coding {
  /// The bytes of a value.
  static func bytes<Value>(of value: Value, by codec: some Codec<Value>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  /// The value of bytes.
  static func value<Value>(of bytes: [UInt8], by codec: some Codec<Value>) throws -> Value {
    try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
  }
}
#endif
