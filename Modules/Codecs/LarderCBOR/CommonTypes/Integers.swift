extension FixedWidthInteger where Self: SignedInteger {
  @inlinable @inline(__always)
  func writeCBOR(to writer: inout CBORWriter) {
    writer.putInteger(Int64(truncatingIfNeeded: self))
  }
}

extension FixedWidthInteger where Self: UnsignedInteger {
  @inlinable @inline(__always)
  func writeCBOR(to writer: inout CBORWriter) {
    writer.putInteger(UInt64(truncatingIfNeeded: self))
  }
}

extension CBORReader {
  /// Reads an integer of at most 64 bits.
  @inlinable @inline(__always)
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
    guard UInt64(truncatingIfNeeded: magnitude) == argument, magnitude >= 0, Integer.isSigned || !isNegative else {
      throw corrupted("the number does not fit in \(type)", at: start)
    }
    return value
  }

  /// Reads an integer.
  ///
  /// - Returns: Whether the integer is negative, and its argument, which is -1 - n for a negative integer n.
  @usableFromInline
  mutating func readLongInteger(_ type: Any.Type) throws -> (isNegative: Bool, argument: UInt64) {
    if next < end {
      // A fast path for the most common forms.
      let first = next.load(as: UInt8.self)
      let remaining = remainingCount
      if first & 0xDF == 0x18, remaining > 1 {
        next += 2
        return (first & 0x20 != 0, UInt64(next.load(fromByteOffset: -1, as: UInt8.self)))
      }
      if first & 0xDF == 0x19, remaining > 2 {
        next += 3
        return (first & 0x20 != 0, UInt64(UInt16(bigEndian: next.loadUnaligned(fromByteOffset: -2, as: UInt16.self))))
      }
      if first & 0xDF == 0x1A, remaining > 4 {
        next += 5
        return (first & 0x20 != 0, UInt64(UInt32(bigEndian: next.loadUnaligned(fromByteOffset: -4, as: UInt32.self))))
      }
    }
    let start = offset
    let (isNegative, argument) = try readBignum(type)
    guard let short = UInt64(exactly: argument) else {
      throw corrupted("the number does not fit in \(type)", at: start)
    }
    return (isNegative, short)
  }

  /// Reads an integer of at most 128 bits, either a plain integer or a bignum.
  ///
  /// - Returns: Whether the integer is negative, and its argument, which is -1 - n for a negative integer n.
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

extension Int: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(Int.self)
  }
}

extension Int8: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(Int8.self)
  }
}

extension Int16: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(Int16.self)
  }
}

extension Int32: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(Int32.self)
  }
}

extension Int64: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(Int64.self)
  }
}

extension UInt: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(UInt.self)
  }
}

extension UInt8: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(UInt8.self)
  }
}

extension UInt16: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(UInt16.self)
  }
}

extension UInt32: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(UInt32.self)
  }
}

extension UInt64: CBORConvertible {
  /// Writes the number in its shortest form.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writeCBOR(to: &writer)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readInteger(UInt64.self)
  }
}

extension Int128: CBORConvertible {
  /// Writes the number in its shortest form, which is a bignum (tag 2 or 3) if 64 bits are too few.
  public func write(to writer: inout CBORWriter) throws {
    try writer.put(self)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  public init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let (isNegative, argument) = try reader.readBignum(Int128.self)
    guard let magnitude = Int128(exactly: argument) else {
      throw reader.corrupted("the number does not fit in Int128", at: start)
    }
    self = isNegative ? ~magnitude : magnitude
  }
}

extension UInt128: CBORConvertible {
  /// Writes the number in its shortest form, which is a bignum (tag 2) if 64 bits are too few.
  public func write(to writer: inout CBORWriter) throws {
    try writer.put(self)
  }

  /// Reads an integer in any form.
  ///
  /// - Throws: `DecodingError` if the item is not an integer, or does not fit.
  public init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let (isNegative, argument) = try reader.readBignum(UInt128.self)
    guard !isNegative else { throw reader.corrupted("the number does not fit in UInt128", at: start) }
    self = argument
  }
}

extension CBORWriter {
  mutating func put(_ value: Int128) throws {
    try putBignum(isNegative: value < 0, UInt128(bitPattern: value < 0 ? ~value : value))
  }

  mutating func put(_ value: UInt128) throws {
    try putBignum(isNegative: false, value)
  }
}
