extension CBORWriter {
  @inline(__always)
  mutating func putInteger(_ value: Int64) {
    let sign = value &>> 63
    putHead(UInt8(truncatingIfNeeded: sign) & 0x20, UInt64(bitPattern: value ^ sign))
    itemCount &+= 1
  }

  @inline(__always)
  mutating func putInteger(_ value: UInt64) {
    putHead(0, value)
    itemCount &+= 1
  }

  /// Writes an integer of any size, as a plain integer if 64 bits are enough and otherwise as a bignum (tag 2 or 3).
  ///
  /// - Throws: `EncodingError` if the tag of a bignum would nest too deep.
  mutating func putBignum(isNegative: Bool, _ argument: UInt128) throws {
    if let short = UInt64(exactly: argument) {
      putHead(isNegative ? 0x20 : 0, short)
    } else {
      try checkDepth(1)
      putHead(0xC0, isNegative ? 3 : 2)
      withUnsafeBytes(of: argument.bigEndian) { bytes in
        putString(0x40, UnsafeRawBufferPointer(rebasing: bytes[(argument.leadingZeroBitCount / 8)...]))
      }
    }
    itemCount &+= 1
  }

  /// Writes a floating-point number in the shortest of the three forms that keeps every bit.
  mutating func putFloat(_ value: Double) {
    if let single = Float(keepingBitsOf: value) { return putFloat(single) }
    reserve(9)
    putByte(0xFB)
    put(bigEndian: value.bitPattern)
    itemCount &+= 1
  }

  /// Writes a floating-point number in the shorter of the two forms that keeps every bit.
  mutating func putFloat(_ value: Float) {
    if let half = HalfPrecision(keepingBitsOf: value) { return putFloat(half) }
    reserve(5)
    putByte(0xFA)
    put(bigEndian: value.bitPattern)
    itemCount &+= 1
  }

  /// Writes a floating-point number in 16 bits.
  mutating func putFloat(_ value: HalfPrecision) {
    reserve(3)
    putByte(0xF9)
    put(bigEndian: value.bitPattern)
    itemCount &+= 1
  }
}

extension Float {
  /// Creates a `Float` if the conversion loses no bit, not even of the payload of a NaN.
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

/// An IEEE 754 number in 16 bits.
///
/// Swift's `Float16` is not available on every platform.
struct HalfPrecision {
  let bitPattern: UInt16

  init(bitPattern: UInt16) {
    self.bitPattern = bitPattern
  }

  /// Creates a number in 16 bits if the conversion loses no bit.
  init?(keepingBitsOf value: Float) {
    let bits = value.bitPattern
    let sign = UInt16(truncatingIfNeeded: bits &>> 16) & 0x8000
    let exponent = Int(bits &>> 23 & 0xFF)
    let fraction = bits & 0x7F_FFFF
    switch exponent {
    case 0 where fraction == 0:
      bitPattern = sign
    case 0xFF:
      guard fraction & 0x1FFF == 0 else { return nil }
      bitPattern = sign | 0x7C00 | UInt16(truncatingIfNeeded: fraction &>> 13)
    case 113...142:
      guard fraction & 0x1FFF == 0 else { return nil }
      bitPattern = sign | UInt16(exponent - 112) &<< 10 | UInt16(truncatingIfNeeded: fraction &>> 13)
    case 103...112:
      // Below the smallest normal number of 16 bits, the leading bit is explicit.
      let significand = fraction | 0x80_0000
      let shift = UInt32(126 - exponent)
      guard significand & (1 &<< shift &- 1) == 0 else { return nil }
      bitPattern = sign | UInt16(truncatingIfNeeded: significand &>> shift)
    default:
      return nil
    }
  }

  /// The same number in 32 bits, including the payload of a NaN.
  var float: Float {
    let sign = UInt32(bitPattern & 0x8000) &<< 16
    let exponent = UInt32(bitPattern &>> 10 & 0x1F)
    let fraction = UInt32(bitPattern & 0x3FF)
    switch exponent {
    case 0:
      let magnitude = Float(fraction) * 0x1p-24
      return Float(bitPattern: sign | magnitude.bitPattern)
    case 0x1F:
      return Float(bitPattern: sign | 0x7F80_0000 | fraction &<< 13)
    default:
      return Float(bitPattern: sign | (exponent + 112) &<< 23 | fraction &<< 13)
    }
  }
}
