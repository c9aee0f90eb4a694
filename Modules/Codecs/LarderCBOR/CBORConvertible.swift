/// A `Codable` type that also writes itself straight into CBOR and reads itself back: the fast road, in the same format.
///
/// ``CBORCodec`` uses it wherever a value, an element or a field adopts it, in the midst of `Codable` data too; other
/// codecs go on using `Codable`. A type that writes a map with its fields under their names reads what was written by
/// `Codable`, and the other way round.
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
  /// - Parameter writer: Gets exactly one item; anything else is refused with an `EncodingError`.
  /// - Throws: What the value or the writer throws; what was written before is dropped then.
  func write(to writer: inout CBORWriter) throws

  /// Reads a value.
  ///
  /// - Parameter reader: Stands before one data item. All of it must be read.
  /// - Throws: `DecodingError` where the item is no such value.
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
  /// - Throws: `DecodingError` where there is no value with this raw value.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    let start = reader.offset
    guard let value = Self(rawValue: try RawValue(from: &reader)) else {
      throw reader.corrupted("No \(Self.self) has this raw value.", at: start)
    }
    self = value
  }
}
