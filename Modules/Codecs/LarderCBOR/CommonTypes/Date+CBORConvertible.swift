import Foundation

extension Date: CBORConvertible {
  /// The seconds from the start of 1970 to the start of 2001, the reference date of `Date`.
  fileprivate static let epochOffset: Double = 978_307_200

  /// Writes the first of three forms that keeps every bit of the date.
  ///
  /// - the seconds since 1970 with tag 1, for example for whole seconds
  /// - the seconds since 1970 as a binary fraction with tag 1001 (extended time, RFC 9581), for all other dates at least
  ///   a picosecond from the start of 2001
  /// - the seconds since 2001 as a number without a tag, as the `Codable` conformance of `Date` writes them
  ///
  /// A `Date` stores a `Double` that counts from 2001. About half of the dates of our time would lose a bit if counted
  /// from 1970.
  func write(to writer: inout CBORWriter) throws {
    let seconds = timeIntervalSinceReferenceDate
    let sum = seconds + Date.epochOffset
    if (sum - Date.epochOffset).bitPattern == seconds.bitPattern {
      try writer.checkDepth(1)
      writer.reserve(1)
      writer.putByte(0xC1)
      if let whole = Int64(exactly: sum) { writer.putInteger(whole) } else { writer.putFloat(sum) }
    } else if (-40...120).contains(seconds.exponent) {
      try writer.putExtendedTime(secondsSince2001: seconds)
    } else {
      writer.putFloat(seconds)
    }
  }

  /// Reads a date with tag 1, tag 1001, or tag 0 (text in the form of RFC 3339).
  ///
  /// It also reads a number without a tag as the seconds since 2001, which is what the `Codable` conformance of `Date`
  /// writes.
  ///
  /// - Throws: `DecodingError` if the item is none of these.
  init(from reader: inout CBORReader) throws {
    if let seconds = reader.readPresentTime() {
      self.init(timeIntervalSinceReferenceDate: seconds)
      return
    }
    let start = reader.offset
    let seconds: Double
    switch try reader.readTag() {
    // Tag 55799 only marks the data as CBOR.
    case nil, 55799: seconds = try reader.readFloat(Date.self)
    case 1: seconds = try reader.readFloat(Date.self) - Date.epochOffset
    case 1001: seconds = try reader.readExtendedTime()
    case 0:
      guard let time = RFC3339Time(try reader.readText()) else {
        throw reader.corrupted("the text is not a date in the form of RFC 3339", at: start)
      }
      seconds = time.secondsSince1970 - Date.epochOffset
    default:
      throw DecodingError.typeMismatch(
        Date.self, reader.context("the tag of the item is not that of a date", at: start))
    }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
}

extension CBORWriter {
  /// Writes an extended time (tag 1001) whose only key, 5, has an array of an exponent of two and an integer.
  ///
  /// - Parameter seconds: At least 2 to the power of -40 and less than 2 to the power of 121, or as much below 0.
  fileprivate mutating func putExtendedTime(secondsSince2001 seconds: Double) throws {
    // seconds = significand / 2^shift
    let shift = 52 - seconds.exponent
    let significand = Int128(seconds.significandBitPattern | 1 << 52) << max(-shift, 0)
    let sum = Int128(Date.epochOffset) << max(shift, 0) + (seconds < 0 ? -significand : significand)
    let zeroCount = min(sum.trailingZeroBitCount, max(shift, 0))
    // A tag, a map, an array and perhaps a bignum.
    try checkDepth(4)
    putHead(0xC0, 1001)
    putHead(0xA0, 1)
    putHead(0, 5)
    putHead(0x80, 2)
    let count = itemCount
    putInteger(Int64(zeroCount - max(shift, 0)))
    try (sum >> zeroCount).write(to: &self)
    itemCount = count + 1
  }
}

extension CBORReader {
  /// Reads a date in one of the two forms that most dates since 2009 have.
  ///
  /// - Returns: The seconds since 2001, or `nil` if the item has another form.
  @inline(__always)
  fileprivate mutating func readPresentTime() -> Double? {
    guard remainingCount >= 16 else { return nil }
    let (head, tail) = (
      UInt64(bigEndian: next.loadUnaligned(as: UInt64.self)),
      UInt64(bigEndian: next.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    )
    // Tag 1 and a 64-bit floating-point number.
    if head &>> 48 == 0xC1FB {
      next += 10
      return Double(bitPattern: head &<< 16 | tail &>> 48) - Date.epochOffset
    }
    // Tag 1001, a map of one pair, the key 5, an array of two, an exponent from -1 to -24, and a 64-bit integer.
    let shift = Int64(head &>> 8 & 0xFF) - 0x1F
    guard head &>> 16 == 0xD903_E9A1_0582, head & 0xFF == 0x1B, (1...24).contains(shift), tail &>> 62 == 0 else {
      return nil
    }
    next += 16
    let power = Double(bitPattern: UInt64(1023 - shift) << 52)
    return Double(Int64(tail) - Int64(Date.epochOffset) << shift) * power
  }

  /// Reads the content of an extended time.
  ///
  /// It supports the base times of keys 1, 4 and 5, and the decimal fractions of a second of keys -3 to -18. Other
  /// negative keys would change the meaning and are rejected, except for the time scale UTC. All other keys are only
  /// information.
  ///
  /// - Returns: The seconds since 2001.
  fileprivate mutating func readExtendedTime() throws -> Double {
    let start = offset
    var base: Double?
    var fraction = 0.0
    try readPairs { reader in
      let place = reader.offset
      guard reader.isNextAnInteger else {
        try reader.skip()
        return try reader.skip()
      }
      switch try reader.readInteger(Int.self) {
      case 1:
        base = try reader.readFloat(Double.self) - Date.epochOffset
      case 4:
        let (exponent, digits) = try reader.readDecimalFraction(Double.self)
        guard let value = Double("\(digits)e\(exponent)"), value.isFinite else {
          throw reader.corrupted("the time is out of range", at: place)
        }
        base = value - Date.epochOffset
      case 5:
        base = try reader.readBinaryFraction()
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
    guard let base else { throw corrupted("the extended time has no base time", at: start) }
    return base + fraction
  }

  /// A Boolean value that indicates whether the next item is an integer.
  private var isNextAnInteger: Bool { next < end && next.load(as: UInt8.self) < 0x40 }

  /// Reads an array of an exponent of two and an integer, a time since 1970.
  ///
  /// - Returns: The seconds since 2001.
  private mutating func readBinaryFraction() throws -> Double {
    let start = offset
    guard try openArray() == 2 else { throw corrupted("a fraction must have an exponent and an integer", at: start) }
    let exponent = try readInteger(Int.self)
    guard (-1100...1100).contains(exponent) else { throw corrupted("the time is out of range", at: start) }
    defer { depth -= 1 }
    let (isNegative, bytes) = try readBytesOfBignum()
    // From the highest bit to the lowest, with a negative number in two's complement. Earlier versions wrote up to 1,100
    // bits for dates close to 2001. After the subtraction at the binary point, only the last 53 of them differ from 0.
    let bitCount = bytes.count * 8
    var sum: Int128 = isNegative ? -1 : 0
    for weight in stride(from: max(bitCount + exponent, 0), through: min(exponent, 0), by: -1) {
      let index = weight - exponent
      let bit = (0..<bitCount).contains(index) ? bytes[bytes.count - 1 - index / 8] >> (index % 8) & 1 : 0
      sum = sum * 2 + Int128(isNegative && index >= 0 ? 1 - bit : bit)
      if weight == 0 { sum -= Int128(Date.epochOffset) }
      guard sum.magnitude < 1 << 120 else { throw corrupted("the time is out of range", at: start) }
    }
    return Double(sign: .plus, exponent: min(exponent, 0), significand: Double(sum))
  }

  /// Reads the bytes of an integer of any size.
  ///
  /// - Returns: A Boolean value that indicates whether the integer is negative, and its argument, which is -1 - n for a
  ///   negative integer n.
  private mutating func readBytesOfBignum() throws -> (isNegative: Bool, [UInt8]) {
    let start = offset
    if isNextAnInteger {
      let (isNegative, argument) = try readLongInteger(Double.self)
      return (isNegative, withUnsafeBytes(of: argument.bigEndian, Array.init))
    }
    let tag = try readTag()
    guard tag == 2 || tag == 3, case let bytes = try readBytes(), bytes.count <= 160 else {
      throw corrupted("the time is out of range", at: start)
    }
    return (tag == 3, bytes)
  }
}

/// A point in time in the text form of RFC 3339, such as `2013-03-21T20:04:00.5+01:00`.
struct RFC3339Time {
  let secondsSince1970: Double

  /// Parses text, or returns `nil` if it is not a time in this form.
  init?(_ text: String) {
    var rest = Array(text.utf8)[...]
    func take(_ count: Int) -> Int? {
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count).reduce(0 as Int?) { sum, byte in
        guard let sum, (0x30...0x39).contains(byte) else { return nil }
        return sum * 10 + Int(byte - 0x30)
      }
    }
    func takeOne(of characters: String) -> UInt8? {
      guard let first = rest.first, characters.utf8.contains(first) else { return nil }
      rest = rest.dropFirst()
      return first
    }
    guard let year = take(4), takeOne(of: "-") != nil, let month = take(2), (1...12).contains(month),
      takeOne(of: "-") != nil, let day = take(2), day > 0, takeOne(of: "Tt ") != nil,
      let hour = take(2), hour < 24, takeOne(of: ":") != nil, let minute = take(2), minute < 60,
      takeOne(of: ":") != nil, let second = take(2), second <= 60
    else { return nil }
    var fraction = 0.0
    if takeOne(of: ".") != nil {
      let digits = rest.prefix { (0x30...0x39).contains($0) }
      guard !digits.isEmpty, let value = Double("0." + String(decoding: digits, as: UTF8.self)) else { return nil }
      fraction = value
      rest = rest.dropFirst(digits.count)
    }
    guard let zone = takeOne(of: "Zz+-") else { return nil }
    var minutesEast = 0
    if zone == UInt8(ascii: "+") || zone == UInt8(ascii: "-") {
      guard let hours = take(2), hours < 24, takeOne(of: ":") != nil, let minutes = take(2), minutes < 60 else {
        return nil
      }
      minutesEast = (hours * 60 + minutes) * (zone == UInt8(ascii: "-") ? -1 : 1)
    }
    let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let dayCount = month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard rest.isEmpty, day <= dayCount else { return nil }
    // Counts days since 1970 in the Gregorian calendar. Years start in March, so that a leap day is the last of its
    // year.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    secondsSince1970 = Double(days * 86_400 + hour * 3600 + (minute - minutesEast) * 60 + second) + fraction
  }
}
