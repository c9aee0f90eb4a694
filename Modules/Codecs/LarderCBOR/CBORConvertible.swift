/// A `Codable` type that also writes itself directly as CBOR and reads itself back, which is faster and gives the same
/// format.
///
/// ``CBORCodec`` uses the conformance for every value, element and field whose type has one, also inside `Codable`
/// data. Other codecs continue to use `Codable`. A type that writes a map with its fields under their names can read
/// data that was written by `Codable`, and the reverse.
///
/// ```swift
/// extension User: CBORConvertible {
///   func write(to writer: inout CBORWriter) throws {
///     try writer.writeMap { map in
///       try map.write(name, forKey: "name")
///       try map.writeIfPresent(visits, forKey: "visits")
///     }
///   }
///   init(from reader: inout CBORReader) throws {
///     self = try reader.readMap { map in
///       try User(name: map.read(forKey: "name"), visits: map.readIfPresent(forKey: "visits"))
///     }
///   }
/// }
/// ```
public protocol CBORConvertible: Codable, SendableMetatype {
  /// Writes this value as one data item.
  ///
  /// - Parameter writer: The writer. You must write exactly one item; otherwise encoding fails with an `EncodingError`.
  /// - Throws: An error of the value or the writer. The codec then discards the bytes that were written before.
  func write(to writer: inout CBORWriter) throws

  /// Reads a value.
  ///
  /// - Parameter reader: A reader positioned before one data item. You must read the whole item.
  /// - Throws: `DecodingError` if the item is not such a value.
  init(from reader: inout CBORReader) throws
}

extension CBORConvertible where Self: RawRepresentable, RawValue: CBORConvertible {
  /// Writes the raw value.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    try rawValue.write(to: &writer)
  }

  /// Reads a raw value.
  ///
  /// - Throws: `DecodingError` if no value has this raw value.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    let start = reader.offset
    guard let value = Self(rawValue: try RawValue(from: &reader)) else {
      throw reader.corrupted("no \(Self.self) has this raw value", at: start)
    }
    self = value
  }
}
