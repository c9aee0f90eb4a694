#if Compression
extension UnsafeRawBufferPointer {
  /// The number at a place, whose bytes must all be there.
  func littleEndian<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: Number.Type) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }
}

extension [UInt8] {
  /// Appends the digits of a number.
  mutating func append(decimal number: some FixedWidthInteger) {
    append(contentsOf: String(number).utf8)
  }

  /// Appends the bytes of a number.
  mutating func append(littleEndian number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}
#endif
