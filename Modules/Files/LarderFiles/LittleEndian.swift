extension [UInt8] {
  /// Appends the bytes of a number in little-endian order.
  @inlinable
  public mutating func append(littleEndian number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }

  /// Appends a variable-length number with seven bits per byte, lowest bits first (LEB128).
  ///
  /// ```swift
  /// var record: [UInt8] = []
  /// record.append(littleEndian: UInt32(17))
  /// record.append(variable: 300)
  /// ```
  @inlinable
  public mutating func append(variable number: UInt64) {
    var rest = number
    while rest > 0x7F {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }
}
