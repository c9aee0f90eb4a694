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
  ///   - name: The name of the format; `json` unless given. Give another where `encoder` writes dates, data or keys in a
  ///     way of its own, so that a store is never opened with a codec that reads them wrongly.
  ///   - encoder: Writes the JSON. The codec takes it as it is then; do not change it afterwards.
  ///   - decoder: Reads what `encoder` writes; do not change it afterwards.
  public init(
    name: String = "json", encoder: JSONEncoder = JSONCodec.makeEncoder(), decoder: JSONDecoder = JSONDecoder()
  ) {
    self.name = name
    self.encoder = encoder
    self.decoder = decoder
  }

  /// The encoder that is used unless another is given.
  public static func makeEncoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// The name of the format: `json` unless another was given.
  public let name: String

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
