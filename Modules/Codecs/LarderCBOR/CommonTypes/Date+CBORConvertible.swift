#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Date: CBORConvertible {
  /// The seconds from the start of 1970 to the start of 2001, which is the reference date of `Date`.
  private static let epochOffset: Double = 978_307_200

  /// Writes the seconds since 1970 with tag 1 if they are exact, as they are for whole seconds.
  ///
  /// Otherwise writes a binary fraction with tag 1001 (extended time, RFC 9581), which is always exact.
  ///
  /// A `Date` stores a `Double` that counts from 2001. About half of the dates of our time would lose a bit if counted
  /// from 1970.
  public func write(to writer: inout CBORWriter) throws {
    let seconds = timeIntervalSinceReferenceDate
    let sum = seconds + Date.epochOffset
    guard sum - Date.epochOffset == seconds || seconds.isNaN else {
      try writer.checkDepth(EpochFraction.depth)
      return EpochFraction.write(secondsSince2001: seconds, to: &writer)
    }
    try writer.checkDepth(1)
    writer.reserve(1)
    writer.putByte(0xC1)
    if let whole = Int64(exactly: sum) { writer.putInteger(whole) } else { writer.putFloat(sum) }
  }

  /// Reads a date with tag 1, tag 1001, or tag 0 (text in the form of RFC 3339).
  ///
  /// It also reads a number without a tag as the seconds since 2001, which is what the `Codable` conformance of `Date`
  /// writes.
  ///
  /// - Throws: `DecodingError` if the item is none of these.
  public init(from reader: inout CBORReader) throws {
    if reader.remainingCount > 13 {
      // A fast path for the forms that this codec writes.
      let first = reader.next.loadUnaligned(as: UInt16.self)
      if first == UInt16(bigEndian: 0xC1FB) || first == UInt16(bigEndian: 0xC11A) {
        reader.next += 1
        self.init(timeIntervalSinceReferenceDate: try reader.readFloat(Date.self) - Date.epochOffset)
        return
      }
      if first == UInt16(bigEndian: 0xD903), reader.next.load(fromByteOffset: 2, as: UInt8.self) == 0xE9 {
        reader.next += 3
        if let seconds = EpochFraction.readShortForm(from: &reader) {
          self.init(timeIntervalSinceReferenceDate: seconds)
          return
        }
        self.init(timeIntervalSinceReferenceDate: try EpochFraction.readExtendedTime(from: &reader))
        return
      }
    }
    let start = reader.offset
    let tag = try reader.readTag()
    let seconds: Double
    switch tag {
    // Tag 55799 only marks the data as CBOR.
    case nil, 55799: seconds = try reader.readFloat(Date.self)
    case 1: seconds = try reader.readFloat(Date.self) - Date.epochOffset
    case 1001: seconds = try EpochFraction.readExtendedTime(from: &reader)
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
