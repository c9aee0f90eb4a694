/// The type codes of the tuple encoding of FoundationDB.
enum KeyComponentCode {
  static let null: UInt8 = 0x00
  static let bytes: UInt8 = 0x01
  static let string: UInt8 = 0x02
  static let nested: UInt8 = 0x05
  static let longNegative: UInt8 = 0x0B
  /// The integer zero; an integer of n bytes has this code plus n, or minus n where it is negative.
  static let zero: UInt8 = 0x14
  static let longPositive: UInt8 = 0x1D
  static let float: UInt8 = 0x20
  static let double: UInt8 = 0x21
  static let `false`: UInt8 = 0x26
  static let `true`: UInt8 = 0x27
  static let uuid: UInt8 = 0x30

  /// Ends bytes, strings and nested components.
  static let terminator: UInt8 = 0x00
  /// Follows a zero that does not end anything.
  static let escape: UInt8 = 0xFF

  /// The bits of a floating-point number so that they order as unsigned integers: the sign flipped, or all bits of a
  /// negative number.
  static func ordered<Bits: FixedWidthInteger & UnsignedInteger>(_ bits: Bits) -> Bits {
    let sign = Bits(1) << (Bits.bitWidth - 1)
    return bits & sign == 0 ? bits ^ sign : ~bits
  }

  /// The bits of a floating-point number that ``ordered(_:)`` made.
  static func unordered<Bits: FixedWidthInteger & UnsignedInteger>(_ bits: Bits) -> Bits {
    let sign = Bits(1) << (Bits.bitWidth - 1)
    return bits & sign == 0 ? ~bits : bits ^ sign
  }
}
