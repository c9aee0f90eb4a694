extension CBORConvertible where Self: FixedWidthInteger {
  /// Writes the number in its shortest form, which is a bignum (tag 2 or 3) if 64 bits are too few.
  ///
  /// - Throws: `EncodingError` if the number has more than 128 bits, or the tag of a bignum would nest too deep.
  @inline(__always)
  func write(to writer: inout CBORWriter) throws {
    if Self.bitWidth > 64 {
      guard let argument = UInt128(exactly: self < 0 ? ~self : self) else {
        throw writer.invalid("the number has more than 128 bits")
      }
      try writer.putBignum(isNegative: self < 0, argument)
    } else if Self.isSigned {
      writer.putInteger(Int64(truncatingIfNeeded: self))
    } else {
      writer.putInteger(UInt64(truncatingIfNeeded: self))
    }
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inline(__always)
  init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(Self.self)
  }
}

extension Int: CBORConvertible {}
extension Int8: CBORConvertible {}
extension Int16: CBORConvertible {}
extension Int32: CBORConvertible {}
extension Int64: CBORConvertible {}
extension Int128: CBORConvertible {}
extension UInt: CBORConvertible {}
extension UInt8: CBORConvertible {}
extension UInt16: CBORConvertible {}
extension UInt32: CBORConvertible {}
extension UInt64: CBORConvertible {}
extension UInt128: CBORConvertible {}

extension CBORReader {
  /// Reads an integer in any form.
  @inline(__always)
  mutating func readInteger<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
    if next < end {
      let first = next.load(as: UInt8.self)
      if first < 24 {
        next += 1
        return Integer(truncatingIfNeeded: first)
      }
    }
    let start = offset
    let (isNegative, argument) = try readLongInteger(type)
    // Computes -1 - n without a wider type.
    let magnitude = Integer(truncatingIfNeeded: argument)
    let value = isNegative ? ~magnitude : magnitude
    guard UInt128(truncatingIfNeeded: magnitude) == argument, magnitude >= 0, Integer.isSigned || !isNegative else {
      throw corrupted("the number does not fit in \(type)", at: start)
    }
    return value
  }

  /// Reads an integer of at most 128 bits, with a fast path for the most common forms.
  ///
  /// - Returns: Whether the integer is negative, and its argument, which is -1 - n for a negative integer n.
  mutating func readLongInteger(_ type: Any.Type) throws -> (isNegative: Bool, argument: UInt128) {
    if next < end {
      let first = next.load(as: UInt8.self)
      let remaining = remainingCount
      if first & 0xDF == 0x18, remaining > 1 {
        next += 2
        return (first & 0x20 != 0, UInt128(next.load(fromByteOffset: -1, as: UInt8.self)))
      }
      if first & 0xDF == 0x19, remaining > 2 {
        next += 3
        return (first & 0x20 != 0, UInt128(UInt16(bigEndian: next.loadUnaligned(fromByteOffset: -2, as: UInt16.self))))
      }
      if first & 0xDF == 0x1A, remaining > 4 {
        next += 5
        return (first & 0x20 != 0, UInt128(UInt32(bigEndian: next.loadUnaligned(fromByteOffset: -4, as: UInt32.self))))
      }
    }
    return try readBignum(type)
  }

  /// Reads an integer of at most 128 bits, either a plain integer or a bignum.
  ///
  /// - Returns: A Boolean value that indicates whether the integer is negative, and its argument, which is -1 - n for a
  ///   negative integer n.
  mutating func readBignum(_ type: Any.Type) throws -> (isNegative: Bool, argument: UInt128) {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    switch (head.major, tag) {
    case (.unsigned, 1), (.negative, 1): throw mismatch(type, tag: tag, head, at: start)
    case (.unsigned, _): return (false, UInt128(head.argument))
    case (.negative, _): return (true, UInt128(head.argument))
    case (.bytes, 2), (.bytes, 3):
      let bytes = head.isIndefinite ? try readChunks(.bytes) : Array(try content(head))
      let digits = bytes.drop { $0 == 0 }
      guard digits.count <= 16 else { throw corrupted("the number does not fit in \(type)", at: start) }
      return (tag == 3, digits.reduce(0) { $0 &<< 8 | UInt128($1) })
    default: throw mismatch(type, tag: tag, head, at: start)
    }
  }
}
