/// One CBOR value of any type, as bytes that are checked but not decoded.
///
/// With it, a type keeps a part that another program, or another version of the type, has encoded:
///
/// ```swift
/// struct Message: Codable {
///   var sender: String
///   var payload: CBORItem
/// }
/// ```
///
/// ``CBORCodec`` reads and writes the item itself. Other codecs write its bytes.
public struct CBORItem: Codable, Hashable, Sendable {
  /// The bytes of one data item.
  public let bytes: [UInt8]

  /// Creates an item from its bytes.
  ///
  /// - Throws: `DecodingError` if the bytes are not exactly one well-formed item, contain text that is not UTF-8, or nest
  ///   more than 512 levels deep.
  public init(_ bytes: some Sequence<UInt8>) throws {
    let bytes = Array(bytes)
    try bytes.withUnsafeBytes { try CBORItem.check($0, depth: 0) }
    self.bytes = bytes
  }

  private static func check(_ bytes: UnsafeRawBufferPointer, depth: Int) throws {
    var reader = CBORReader(bytes)
    reader.depth = depth
    _ = try reader.readItem()
    try reader.checkEnd()
  }
}

extension CBORItem: CBORConvertible {
  func write(to writer: inout CBORWriter) throws {
    try bytes.withUnsafeBytes { bytes in
      do {
        // Another codec may have decoded bytes that are no item, and a sound item may nest too deep here.
        try CBORItem.check(bytes, depth: writer.depth)
      } catch {
        throw writer.invalid("the bytes are not one CBOR item that can stand here: \(error)")
      }
      writer.putRaw(bytes)
    }
    writer.itemCount &+= 1
  }

  init(from reader: inout CBORReader) throws {
    bytes = try reader.readItem()
  }
}
