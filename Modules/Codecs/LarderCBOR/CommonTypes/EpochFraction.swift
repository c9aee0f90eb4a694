/// A time as a binary fraction of seconds since 1970, which is an integer times a power of two.
///
/// Every `Date` has an exact representation in this form.
///
/// It is the content of key 5 of an extended time (RFC 9581, section 3.3, tag 1001).
struct EpochFraction {
  /// The seconds from the start of 1970 to the start of 2001.
  private static let epochOffset: UInt32 = 978_307_200

  private let exponent: Int

  /// The integer's 32-bit digits, the least significant first.
  private let digits: [UInt32]

  private let isNegative: Bool

  /// Creates the fraction from the time of a `Date`.
  ///
  /// - Parameter seconds: A finite number of seconds since the start of 2001.
  init(secondsSince2001 seconds: Double) {
    // seconds = significand * 2^exponent, with an odd significand.
    var exponent = seconds == 0 ? 0 : Int(seconds.exponent) - 52
    var significand = UInt64(seconds == 0 ? 0 : seconds.significand * 0x1p52)
    let shift = significand.trailingZeroBitCount & 63
    significand >>= shift
    exponent += shift
    self.exponent = min(exponent, 0)
    let time = EpochFraction.digits(significand, shiftedBy: max(exponent, 0))
    let offset = EpochFraction.digits(UInt64(EpochFraction.epochOffset), shiftedBy: max(-exponent, 0))
    if seconds.sign == .plus {
      (digits, isNegative) = (EpochFraction.sum(offset, time), false)
    } else {
      (digits, isNegative) = EpochFraction.difference(offset, time)
    }
  }

  /// The number of levels that an extended time nests: a tag, a map, an array and perhaps a bignum.
  static var depth: Int { 4 }

  /// Writes the time of a `Date` as an extended time (tag 1001).
  ///
  /// - Parameters:
  ///   - seconds: A finite number of seconds since the start of 2001.
  ///   - writer: A writer with room for ``depth`` more levels.
  static func write(secondsSince2001 seconds: Double, to writer: inout CBORWriter) {
    // 64 bits are enough from days to millions of years away from 2001.
    let shift = 1075 - Int(seconds.bitPattern >> 52 & 0x7FF)
    guard (20...32).contains(shift) else {
      return EpochFraction(secondsSince2001: seconds).write(to: &writer)
    }
    let significand = Int64(seconds.bitPattern & 0x000F_FFFF_FFFF_FFFF | 0x0010_0000_0000_0000)
    let sum = Int64(epochOffset) << Int64(shift) + (seconds < 0 ? -significand : significand)
    // The sum has a bit below the binary point, because otherwise tag 1 would have been exact.
    let zeroCount = sum.trailingZeroBitCount
    writer.reserve(24)
    writer.putHead(0xC0, 1001)
    writer.putByte(0xA1)
    writer.putByte(0x05)
    writer.putByte(0x82)
    let count = writer.itemCount
    writer.putInteger(Int64(zeroCount - shift))
    writer.putInteger(sum >> Int64(zeroCount))
    writer.itemCount = count + 1
  }

  /// Reads the most common form that ``write(secondsSince2001:to:)`` writes.
  ///
  /// - Returns: The seconds since 2001, or `nil` if the item has another form.
  @inline(__always)
  static func readShortForm(from reader: inout CBORReader) -> Double? {
    guard reader.remainingCount >= 13 else { return nil }
    let exponent = reader.next.load(fromByteOffset: 3, as: UInt8.self)
    guard reader.next.loadUnaligned(as: UInt16.self) == UInt16(bigEndian: 0xA105),
      reader.next.load(fromByteOffset: 2, as: UInt8.self) == 0x82,
      // An exponent from -1 to -24, and an integer of 64 bits, 62 of them used.
      (0x20...0x37).contains(exponent), reader.next.load(fromByteOffset: 4, as: UInt8.self) == 0x1B,
      case let sum = UInt64(bigEndian: reader.next.loadUnaligned(fromByteOffset: 5, as: UInt64.self)), sum >> 62 == 0
    else { return nil }
    reader.next += 13
    let shift = Int64(exponent) - 0x1F
    let power = Double(bitPattern: UInt64(1023 - shift) << 52)
    return Double(Int64(sum) - Int64(epochOffset) << shift) * power
  }

  /// Writes an extended time (tag 1001) whose only key is this fraction.
  func write(to writer: inout CBORWriter) {
    writer.putHead(0xC0, 1001)
    writer.putHead(0xA0, 1)
    writer.putHead(0, 5)
    writer.putHead(0x80, 2)
    let count = writer.itemCount
    writer.putInteger(Int64(exponent))
    // The argument of a negative integer n is -1 - n.
    let argument = isNegative ? EpochFraction.difference(digits, [1]).digits : digits
    if argument.count <= 4 {
      let short = argument.reversed().reduce(0 as UInt128) { $0 << 32 | UInt128($1) }
      writer.putCheckedBignum(isNegative: isNegative, short)
    } else {
      writer.putHead(0xC0, isNegative ? 3 : 2)
      let bytes = argument.reversed().flatMap { digit in withUnsafeBytes(of: digit.bigEndian, Array.init) }
      Array(bytes.drop { $0 == 0 }).withUnsafeBytes { writer.put(bytes: $0) }
    }
    writer.itemCount = count + 1
  }

  // MARK: Reading

  /// Reads the content of an extended time in any form.
  ///
  /// It supports the base times of keys 1, 4 and 5, and the decimal fractions of a second of keys -3 to -18. Other
  /// negative keys would change the meaning and are rejected, except for the time scale UTC. All other keys are only
  /// information.
  ///
  /// - Returns: The seconds since 2001.
  static func readExtendedTime(from reader: inout CBORReader) throws -> Double {
    let start = reader.offset
    var base: Double?
    var fraction = 0.0
    try reader.readPairs { reader in
      let place = reader.offset
      guard reader.isNextAnInteger else {
        try reader.skip()
        return try reader.skip()
      }
      switch try reader.readInteger(Int.self) {
      case 1:
        base = try reader.readFloat(Double.self) - Double(epochOffset)
      case 4:
        let (exponent, number) = try reader.readFraction(Double.self)
        guard let value = Double("\(number.isNegative ? "-" : "")\(magnitude(of: number))e\(exponent)"), value.isFinite
        else {
          throw reader.corrupted("the time is out of range", at: place)
        }
        base = value - Double(epochOffset)
      case 5:
        base = try readFraction(from: &reader)
      case let key where [-3, -6, -9, -12, -15, -18].contains(key):
        var scale = 1.0
        for _ in 0..<(-key) { scale *= 10 }
        fraction += try reader.readFloat(Double.self) / scale
      case -1:
        guard try reader.readInteger(Int.self) == 0 else {
          throw reader.corrupted("the time scale is not UTC", at: place)
        }
      case ..<0:
        throw reader.corrupted("the time has an unknown key", at: place)
      default:
        try reader.skip()
      }
    }
    guard let base else { throw reader.corrupted("the extended time has no base time", at: start) }
    return base + fraction
  }

  private static func magnitude(of number: (isNegative: Bool, argument: UInt128)) -> String {
    number.isNegative && number.argument < .max ? "\(number.argument + 1)" : "\(number.argument)"
  }

  /// Reads an array of an exponent of two and an integer, and returns the seconds since 2001.
  private static func readFraction(from reader: inout CBORReader) throws -> Double {
    let start = reader.offset
    guard try reader.openArray() == 2 else {
      throw reader.corrupted("a fraction must have an exponent and an integer", at: start)
    }
    let exponent = try reader.readInteger(Int.self)
    let (isNegative, argument) = try readDigits(from: &reader)
    reader.depth -= 1
    guard (-1100...1100).contains(exponent), argument.count <= 40 else {
      throw reader.corrupted("the time is out of range", at: start)
    }
    // Both numbers become integers times the same power of two, so that the difference is exact.
    let integer = isNegative ? sum(argument, [1]) : argument
    let time = digits(integer, shiftedBy: max(exponent, 0))
    let offset = digits(UInt64(epochOffset), shiftedBy: max(-exponent, 0))
    let result = isNegative ? (digits: sum(time, offset), isNegative: true) : difference(time, offset)
    let magnitude = result.digits.reversed().reduce(0.0) { $0 * 0x1p32 + Double($1) }
    let exact = exactValue(result.digits) ?? magnitude
    return scaled(result.isNegative ? -exact : exact, by: min(exponent, 0))
  }

  /// Returns the number, rounded once, if it has at most 128 bits.
  private static func exactValue(_ digits: [UInt32]) -> Double? {
    guard digits.count <= 4 else { return nil }
    return Double(digits.reversed().reduce(0 as UInt128) { $0 << 32 | UInt128($1) })
  }

  private static func scaled(_ value: Double, by exponent: Int) -> Double {
    Double(sign: value.sign, exponent: exponent, significand: value.magnitude)
  }

  private static func readDigits(
    from reader: inout CBORReader
  ) throws -> (isNegative: Bool, digits: [UInt32]) {
    let start = reader.offset
    let tag = try reader.readTag()
    let head = try reader.readHead()
    switch (head.major, tag) {
    case (.unsigned, _), (.negative, _):
      return (head.major == .negative, digits(head.argument, shiftedBy: 0))
    case (.bytes, 2), (.bytes, 3):
      let bytes = head.isIndefinite ? try reader.readChunks(.bytes) : Array(try reader.content(head))
      guard bytes.count <= 160 else { throw reader.corrupted("the time is out of range", at: start) }
      var digits = [UInt32](repeating: 0, count: (bytes.count + 3) / 4)
      for (index, byte) in bytes.reversed().enumerated() {
        digits[index / 4] |= UInt32(byte) << (8 * UInt32(index % 4))
      }
      return (tag == 3, trimmed(digits))
    default: throw reader.mismatch(Double.self, head, at: start)
    }
  }

  // MARK: Long numbers

  private static func trimmed(_ digits: [UInt32]) -> [UInt32] {
    var digits = digits
    while digits.last == 0 { digits.removeLast() }
    return digits
  }

  private static func digits(_ value: UInt64, shiftedBy shift: Int) -> [UInt32] {
    digits([UInt32(truncatingIfNeeded: value), UInt32(truncatingIfNeeded: value >> 32)], shiftedBy: shift)
  }

  private static func digits(_ value: [UInt32], shiftedBy shift: Int) -> [UInt32] {
    var result = [UInt32](repeating: 0, count: shift / 32 + value.count + 1)
    for (index, digit) in value.enumerated() {
      let wide = UInt64(digit) << UInt64(shift % 32)
      result[shift / 32 + index] |= UInt32(truncatingIfNeeded: wide)
      result[shift / 32 + index + 1] = UInt32(truncatingIfNeeded: wide >> 32)
    }
    return trimmed(result)
  }

  private static func sum(_ first: [UInt32], _ second: [UInt32]) -> [UInt32] {
    var result: [UInt32] = []
    var carry: UInt64 = 0
    for index in 0...max(first.count, second.count) {
      carry += UInt64(index < first.count ? first[index] : 0) + UInt64(index < second.count ? second[index] : 0)
      result.append(UInt32(truncatingIfNeeded: carry))
      carry >>= 32
    }
    return trimmed(result)
  }

  /// Returns the magnitude and the sign of the first number minus the second.
  private static func difference(
    _ first: [UInt32], _ second: [UInt32]
  ) -> (digits: [UInt32], isNegative: Bool) {
    let isLess =
      first.count != second.count
      ? first.count < second.count : first.reversed().lexicographicallyPrecedes(second.reversed())
    let (larger, smaller) = isLess ? (second, first) : (first, second)
    var result: [UInt32] = []
    var borrow: Int64 = 0
    for index in larger.indices {
      borrow += Int64(larger[index]) - Int64(index < smaller.count ? smaller[index] : 0)
      result.append(UInt32(truncatingIfNeeded: borrow))
      borrow >>= 32
    }
    return (trimmed(result), isLess)
  }
}

extension CBORReader {
  /// Whether the next item is an integer.
  fileprivate var isNextAnInteger: Bool { next < end && next.load(as: UInt8.self) < 0x40 }
}
