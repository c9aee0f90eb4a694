extension CBORWriter {
  @inlinable @inline(__always)
  mutating func putInteger(_ value: Int64) {
    let sign = value &>> 63
    putHead(UInt8(truncatingIfNeeded: sign) & 0x20, UInt64(bitPattern: value ^ sign))
    itemCount &+= 1
  }

  @inlinable @inline(__always)
  mutating func putInteger(_ value: UInt64) {
    putHead(0, value)
    itemCount &+= 1
  }

  /// Writes an integer of any size: as one item where 64 bits are enough, and as a bignum (tags 2 and 3) otherwise.
  ///
  /// - Throws: `EncodingError` where the tag of a bignum would nest too deep.
  mutating func putBignum(isNegative: Bool, _ argument: UInt128) throws {
    if UInt64(exactly: argument) == nil { try checkDepth(1) }
    putCheckedBignum(isNegative: isNegative, argument)
  }

  /// Writes an integer of any size where it is known that there is room for a tag.
  mutating func putCheckedBignum(isNegative: Bool, _ argument: UInt128) {
    if let short = UInt64(exactly: argument) {
      putHead(isNegative ? 0x20 : 0, short)
    } else {
      putHead(0xC0, isNegative ? 3 : 2)
      withUnsafeBytes(of: argument.bigEndian) { bytes in
        putString(0x40, UnsafeRawBufferPointer(rebasing: bytes[(argument.leadingZeroBitCount / 8)...]))
      }
    }
    itemCount &+= 1
  }

  /// Writes a floating-point number in the shortest of the three forms that keeps every bit.
  @usableFromInline
  mutating func putFloat(_ value: Double) {
    if let single = Float(keepingBitsOf: value) { return putFloat(single) }
    reserve(9)
    putByte(0xFB)
    put(bigEndian: value.bitPattern)
    itemCount &+= 1
  }

  /// Writes a floating-point number in the shorter of the two forms that keeps every bit.
  @usableFromInline
  mutating func putFloat(_ value: Float) {
    reserve(5)
    if let half = HalfPrecision(keepingBitsOf: value) {
      putByte(0xF9)
      put(bigEndian: half.bitPattern)
    } else {
      putByte(0xFA)
      put(bigEndian: value.bitPattern)
    }
    itemCount &+= 1
  }
}

extension Float {
  /// The number as a `Float`, where that loses nothing; of a number that is none, not even its payload.
  init?(keepingBitsOf value: Double) {
    if value.isNaN {
      let payload = value.bitPattern & 0x000F_FFFF_FFFF_FFFF
      guard payload & 0x1FFF_FFFF == 0 else { return nil }
      let sign = UInt32(truncatingIfNeeded: value.bitPattern &>> 32) & 0x8000_0000
      self.init(bitPattern: sign | 0x7F80_0000 | UInt32(truncatingIfNeeded: payload &>> 29))
    } else {
      self.init(value)
      guard Double(self) == value else { return nil }
    }
  }
}
