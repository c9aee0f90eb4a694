public import Foundation

/// A codec that writes `Codable` values as JSON with Foundation's coders.
///
/// JSON is readable, but slow. By default the codec sorts the keys of objects, does not escape slashes, and writes
/// dates as seconds since 1 January 2001, which is exact. It cannot encode numbers that are not finite.
///
/// ```swift
/// let codec = try JSONCodec<User>().versioned(
///   1, ValueMigration(from: 0, .json(UserV1.self)) { User(name: $0.name, email: nil) })
/// let users = try await JSONFileStore(path: folder + "/users.json", codec: codec)
/// ```
public struct JSONCodec<Value: Codable & Sendable>: Codec {
  private let encoder: JSONEncoder
  private let decoder: JSONDecoder

  /// Creates a codec.
  ///
  /// ```swift
  /// let encoder = JSONCodec<Event>.makeEncoder()
  /// encoder.dateEncodingStrategy = .iso8601
  /// let decoder = JSONDecoder()
  /// decoder.dateDecodingStrategy = .iso8601
  /// let codec = JSONCodec<Event>(name: "json-iso8601", encoder: encoder, decoder: decoder)
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the format. Defaults to `json`. If `encoder` writes dates, data or keys in another way than
  ///     by default, you must choose another name, so a store is never opened with a codec that misreads them.
  ///   - encoder: The encoder. You must not change it afterward. Defaults to ``makeEncoder()``.
  ///   - decoder: A decoder that reads the JSON that `encoder` writes. You must not change it afterward.
  public init(
    name: String = "json", encoder: JSONEncoder = JSONCodec.makeEncoder(), decoder: JSONDecoder = JSONDecoder()
  ) {
    self.name = name
    self.encoder = encoder
    self.decoder = decoder
  }

  /// Returns a new encoder with the default settings of the codec.
  public static func makeEncoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// The name of the format.
  ///
  /// Defaults to `json`.
  public let name: String

  /// ``CodecFormat/json``.
  public var format: CodecFormat { .json }

  /// Appends the JSON of a value.
  ///
  /// - Throws: `EncodingError`, or the error that the value throws.
  public func encode(_ value: Value, into bytes: inout [UInt8], context: ValueContext) throws {
    bytes.append(contentsOf: try encoder.encode(value))
  }

  /// Returns the value that JSON encodes.
  ///
  /// - Throws: `DecodingError`, or the error that the value throws.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Value {
    let data = bytes.withUnsafeBytes { Data($0) }
    return try decoder.decode(Value.self, from: data)
  }
}

extension Codec {
  /// Returns a codec that writes JSON with Foundation's coders; see ``JSONCodec``.
  ///
  /// ```swift
  /// let users = try await SQLiteStore(path: "users.sqlite", codec: .json(User.self))
  /// ```
  ///
  /// - Parameter type: The type of the values, which the compiler can usually infer.
  public static func json<Value: Codable & Sendable>(_ type: Value.Type = Value.self) -> Self
  where Self == JSONCodec<Value> {
    JSONCodec()
  }
}
