/// The first bytes of a data item: what it is, and its argument.
struct ItemHead {
  /// The kinds of items, as the upper three bits of the first byte tell them.
  enum Major: UInt8 {
    case unsigned, negative, bytes, text, array, map, tag, simple
  }

  let major: Major

  /// The lower five bits of the first byte.
  let information: UInt8

  let argument: UInt64

  /// Whether the item ends with a break, or is one.
  var isIndefinite: Bool { information == 31 }

  /// The number of a float.
  var float: Double? {
    guard major == .simple else { return nil }
    return switch information {
    case 25: Double(keepingBitsOf: HalfPrecision(bitPattern: UInt16(truncatingIfNeeded: argument)).float)
    case 26: Double(keepingBitsOf: Float(bitPattern: UInt32(truncatingIfNeeded: argument)))
    case 27: Double(bitPattern: argument)
    default: nil
    }
  }

  /// The number of an integer that is no bignum.
  var integer: Int128? {
    switch major {
    case .unsigned: Int128(argument)
    case .negative: -1 - Int128(argument)
    default: nil
    }
  }

  /// Whether the item is `null` or `undefined`.
  var isNull: Bool { major == .simple && (information == 22 || information == 23) }
}

extension Double {
  /// The number as a `Double`, even of one that is none, whose payload a conversion would change.
  fileprivate init(keepingBitsOf value: Float) {
    if value.isNaN {
      let sign = UInt64(value.bitPattern & 0x8000_0000) &<< 32
      self.init(bitPattern: sign | 0x7FF0_0000_0000_0000 | UInt64(value.bitPattern & 0x7F_FFFF) &<< 29)
    } else {
      self.init(value)
    }
  }
}
