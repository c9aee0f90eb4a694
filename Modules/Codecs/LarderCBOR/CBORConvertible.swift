/// A standard type that has a form of its own in CBOR, which it writes and reads without containers.
protocol CBORConvertible: Codable, SendableMetatype {
  /// Writes this value as one data item.
  ///
  /// - Parameter writer: The writer.
  /// - Throws: `EncodingError`. The caller then discards the bytes that were written.
  func write(to writer: inout CBORWriter) throws

  /// Reads a value.
  ///
  /// - Parameter reader: A reader positioned before one data item, which the initializer reads to its end.
  /// - Throws: `DecodingError` if the item is not such a value.
  init(from reader: inout CBORReader) throws
}
