#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Writes `Codable` values as JSON by Foundation's coder: readable, and slow.
///
/// Unless told otherwise it sorts the keys of objects, leaves slashes alone, and writes dates as seconds since
/// 1 January 2001, which is exact. Numbers that are not finite cannot be written.
public struct JSONCodec<Value: Codable & Sendable>: Codec {
  private let encoder: JSONEncoder
  private let decoder: JSONDecoder

  /// Makes a codec.
  ///
  /// - Parameters:
  ///   - encoder: Writes the JSON. The codec takes it as it is then; do not change it afterwards.
  ///   - decoder: Reads what `encoder` writes; do not change it afterwards.
  public init(encoder: JSONEncoder = JSONCodec.makeEncoder(), decoder: JSONDecoder = JSONDecoder()) {
    self.encoder = encoder
    self.decoder = decoder
  }

  /// The encoder that is used unless another is given.
  public static func makeEncoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// `json`.
  public var name: String { "json" }

  /// ``CodecFormat/json``.
  public var format: CodecFormat { .json }

  /// Appends the JSON of a value.
  ///
  /// - Throws: `EncodingError`, or what the value throws.
  public func encode(_ value: Value, into bytes: inout [UInt8]) throws {
    bytes.append(contentsOf: try encoder.encode(value))
  }

  /// Makes a value of JSON.
  ///
  /// - Throws: `DecodingError`, or what the value throws.
  public func decode(_ bytes: RawSpan) throws -> Value {
    let data = bytes.withUnsafeBytes { Data($0) }
    return try decoder.decode(Value.self, from: data)
  }
}

extension Codec {
  /// JSON by Foundation's coder; see ``JSONCodec``.
  ///
  /// - Parameter type: The type of the values; it is usually known from where the codec goes.
  public static func json<Value: Codable & Sendable>(_ type: Value.Type = Value.self) -> Self
  where Self == JSONCodec<Value> {
    JSONCodec()
  }
}
