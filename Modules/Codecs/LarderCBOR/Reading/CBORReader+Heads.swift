extension CBORReader {
  /// Reads the head of the next item.
  mutating func readHead() throws -> ItemHead {
    guard next < end else { throw truncated() }
    let first = next.load(as: UInt8.self)
    let information = first & 0x1F
    var argument = UInt64(information)
    var count = 1
    switch information {
    case 0..<24: break
    case 24...27:
      count = 1 + 1 &<< Int(information - 24)
      guard remainingCount >= count else { throw truncated() }
      argument =
        switch information {
        case 24: UInt64(next.load(fromByteOffset: 1, as: UInt8.self))
        case 25: UInt64(UInt16(bigEndian: next.loadUnaligned(fromByteOffset: 1, as: UInt16.self)))
        case 26: UInt64(UInt32(bigEndian: next.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
        default: UInt64(bigEndian: next.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        }
    case 31:
      argument = 0
    default:
      throw malformed()
    }
    guard let major = ItemHead.Major(rawValue: first &>> 5) else { throw malformed() }
    switch major {
    case .unsigned, .negative, .tag:
      if information == 31 { throw malformed() }
    case .simple:
      // A break is read by the item that it ends.
      if information == 31 || (information == 24 && argument < 32) { throw malformed() }
    default: break
    }
    next += count
    return ItemHead(major: major, information: information, argument: argument)
  }

  /// Reads the head of the next item and skips its tags.
  ///
  /// - Parameter type: The type to name in an error.
  /// - Throws: `DecodingError` if the item is malformed, or if a tag gives it another meaning than its content, such as
  ///   a date.
  mutating func readUntaggedHead(_ type: Any.Type) throws -> ItemHead {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    if CBORReader.meaning(of: tag) != nil { throw mismatch(type, tag: tag, head, at: start) }
    return head
  }

  /// Returns the meaning of an item with a tag if its content must not be read as the value.
  static func meaning(of tag: UInt64?) -> String? {
    switch tag {
    case 1, 1001: "a date"
    case 2, 3: "an integer of more than 64 bits"
    case 4: "a decimal fraction"
    case 5: "a binary fraction"
    default: nil
    }
  }

  /// Skips the tags before the next item and reads their numbers.
  ///
  /// - Returns: The number of the last tag, which describes the item, or `nil` if there is no tag.
  /// - Throws: `DecodingError` if a tag is malformed, or the tags nest too deep.
  mutating func readTag() throws -> UInt64? {
    var tag: UInt64?
    var count = depth
    while next < end, next.load(as: UInt8.self) &>> 5 == 6 {
      count += 1
      if count > CBORWriter.maximumDepth { throw tooDeep() }
      tag = try readHead().argument
    }
    return tag
  }

  /// Reads the break that ends an item of indefinite length, if it is next.
  ///
  /// - Returns: Whether there was a break.
  mutating func readBreak() throws -> Bool {
    guard next < end else { throw truncated() }
    guard next.load(as: UInt8.self) == 0xFF else { return false }
    next += 1
    return true
  }
}

/// The head of a data item: its major type and its argument.
struct ItemHead {
  /// The major types, as encoded in the upper three bits of the first byte.
  enum Major: UInt8 {
    case unsigned, negative, bytes, text, array, map, tag, simple
  }

  let major: Major

  /// The lower five bits of the first byte.
  let information: UInt8

  let argument: UInt64

  /// A Boolean value that indicates whether the item ends with a break, or is a break.
  var isIndefinite: Bool { information == 31 }

  /// The value of a floating-point number, or `nil` for any other item.
  var float: Double? {
    guard major == .simple else { return nil }
    return switch information {
    case 25: Double(keepingBitsOf: HalfPrecision(bitPattern: UInt16(truncatingIfNeeded: argument)).float)
    case 26: Double(keepingBitsOf: Float(bitPattern: UInt32(truncatingIfNeeded: argument)))
    case 27: Double(bitPattern: argument)
    default: nil
    }
  }

  /// The value of an integer that is not a bignum, or `nil` for any other item.
  var integer: Int128? {
    switch major {
    case .unsigned: Int128(argument)
    case .negative: -1 - Int128(argument)
    default: nil
    }
  }

  /// A Boolean value that indicates whether the item is `null` or `undefined`.
  var isNull: Bool { major == .simple && (information == 22 || information == 23) }
}

extension Double {
  /// Creates a `Double` that keeps the payload of a NaN, which a conversion would change.
  fileprivate init(keepingBitsOf value: Float) {
    if value.isNaN {
      let sign = UInt64(value.bitPattern & 0x8000_0000) &<< 32
      self.init(bitPattern: sign | 0x7FF0_0000_0000_0000 | UInt64(value.bitPattern & 0x7F_FFFF) &<< 29)
    } else {
      self.init(value)
    }
  }
}
