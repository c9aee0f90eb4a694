/// A number of IEEE 754 in 16 bits; Swift's `Float16` is not there on every platform.
struct HalfPrecision {
  let bitPattern: UInt16

  init(bitPattern: UInt16) {
    self.bitPattern = bitPattern
  }

  /// A number in 16 bits, where that loses nothing.
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
      // Below the smallest normal number of 16 bits the leading bit is written out.
      let significand = fraction | 0x80_0000
      let shift = UInt32(126 - exponent)
      guard significand & (1 &<< shift &- 1) == 0 else { return nil }
      bitPattern = sign | UInt16(truncatingIfNeeded: significand &>> shift)
    default:
      return nil
    }
  }

  /// The same number in 32 bits, with its payload where it is none.
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
