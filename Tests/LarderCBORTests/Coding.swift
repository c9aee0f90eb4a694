import Foundation
import Larder
import LarderCBOR
import Testing

/// Shorthands for values, bytes and hexadecimal digits.
enum Coding {
  static func encoded<Value: Codable & Sendable>(_ value: Value) throws -> [UInt8] {
    try encoded(value, CBORCodec<Value>())
  }

  static func encoded<Coder: Codec>(_ value: Coder.Value, _ codec: Coder) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String(format: "%02x", $0) }.joined()
  }

  static func decoded<Value: Codable & Sendable>(_ type: Value.Type = Value.self, _ bytes: [UInt8]) throws -> Value {
    try decoded(bytes, CBORCodec<Value>())
  }

  static func decoded<Coder: Codec>(_ bytes: [UInt8], _ codec: Coder) throws -> Coder.Value {
    try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
  }

  static func decoded<Value: Codable & Sendable>(_ type: Value.Type = Value.self, hex: String) throws -> Value {
    try decoded(type, bytes(hex))
  }

  static func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex.utf8).map { Int($0) < 0x3A ? $0 - 0x30 : ($0 | 0x20) - 0x57 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  /// Expects that a value round-trips and that its encoding is deterministic.
  static func expectRoundTrip<Value: Codable & Sendable & Equatable>(
    _ values: [Value], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for value in values {
      let bytes = try encoded(value)
      #expect(try decoded(Value.self, bytes) == value, sourceLocation: sourceLocation)
      #expect(try encoded(try decoded(Value.self, bytes)) == bytes, sourceLocation: sourceLocation)
    }
    let bytes = try encoded(values)
    #expect(try decoded([Value].self, bytes) == values, sourceLocation: sourceLocation)
  }

  /// Expects that the decoder refuses bytes.
  static func expectRefused<Value: Codable & Sendable>(
    _ type: Value.Type, _ hex: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(throws: DecodingError.self, "\(type) of \(hex)", sourceLocation: sourceLocation) {
      try decoded(type, hex: hex)
    }
  }
}
