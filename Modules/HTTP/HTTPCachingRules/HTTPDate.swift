#if HTTPCache
/// A date of HTTP in whole seconds since 1970 (RFC 9110, section 5.6.7).
///
/// The parser accepts the three formats of the RFC and nothing else. Names of days and months and `GMT` may have any
/// case; the name of the day isn't compared with the date.
///
/// ```swift
/// let date = HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT".utf8, received: Date.now.timeIntervalSince1970)
/// ```
public struct HTTPDate: Sendable, Hashable, Comparable {
  /// The seconds since 1970.
  public var seconds: Int64

  /// Creates a date.
  ///
  /// - Parameter seconds: The seconds since 1970.
  public init(seconds: Int64) {
    self.seconds = seconds
  }

  /// Reads a date.
  ///
  /// - Parameters:
  ///   - bytes: The text, without whitespace around it.
  ///   - received: The time of the message in seconds since 1970. A year of two digits that would be more than 50 years
  ///     later is in the past century.
  public init?(_ bytes: some Collection<UInt8>, received: Double) {
    let text = Array(bytes)
    switch text.count {
    case 24:  // Sun Nov  6 08:49:37 1994
      guard Self.isName(text[0..<3], in: Self.days), text[3] == 0x20, text[7] == 0x20, text[10] == 0x20,
        text[19] == 0x20, let month = Self.month(text[4..<7]),
        let day = text[8] == 0x20 ? Self.number(text[9..<10]) : Self.number(text[8..<10]),
        let year = Self.number(text[20..<24])
      else { return nil }
      self.init(year: year, month: month, day: day, time: text[11..<19])
    case 29:  // Sun, 06 Nov 1994 08:49:37 GMT
      guard Self.isName(text[0..<3], in: Self.days), text[3] == UInt8(ascii: ","), text[4] == 0x20, text[7] == 0x20,
        text[11] == 0x20, text[16] == 0x20, let day = Self.number(text[5..<7]), let month = Self.month(text[8..<11]),
        let year = Self.number(text[12..<16]), Self.isZone(text[25..<29])
      else { return nil }
      self.init(year: year, month: month, day: day, time: text[17..<25])
    case 30...33:  // Sunday, 06-Nov-94 08:49:37 GMT
      let comma = text.count - 24
      guard Self.isName(text[0..<comma], in: Self.longDays), text[comma] == UInt8(ascii: ","),
        text[comma + 1] == 0x20, text[comma + 4] == UInt8(ascii: "-"), text[comma + 8] == UInt8(ascii: "-"),
        text[comma + 11] == 0x20, let day = Self.number(text[(comma + 2)..<(comma + 4)]),
        let month = Self.month(text[(comma + 5)..<(comma + 8)]),
        let shortYear = Self.number(text[(comma + 9)..<(comma + 11)]), Self.isZone(text[(comma + 20)..<(comma + 24)])
      else { return nil }
      let present = Self.year(ofDay: Int64((received / 86_400).rounded(.down)))
      var year = present - present % 100 + shortYear
      if year > present + 50 { year -= 100 }
      if year <= present - 50 { year += 100 }
      self.init(year: year, month: month, day: day, time: text[(comma + 12)..<(comma + 20)])
    default:
      return nil
    }
  }

  /// The date as an IMF-fixdate.
  ///
  /// A date before the year 1 or after the year 9999 becomes the nearest that can be written.
  public var text: String {
    let (day, second) = min(max(seconds, Self.first), Self.last).quotientAndRemainder(dividingBy: 86_400)
    let days = second < 0 ? day - 1 : day
    let time = second < 0 ? second + 86_400 : second
    let year = Self.year(ofDay: days)
    var rest = Int(days - Self.day(year: year, month: 1, day: 1))
    var month = 1
    while rest >= Self.dayCount(year: year, month: month) {
      rest -= Self.dayCount(year: year, month: month)
      month += 1
    }
    let weekday = Int(((days % 7) + 7 + 4) % 7)
    func padded(_ value: Int64, _ width: Int = 2) -> String {
      String(repeating: "0", count: max(0, width - "\(value)".utf8.count)) + "\(value)"
    }
    let name = Self.days[weekday].capitalizedName
    return "\(name), \(padded(Int64(rest + 1))) \(Self.months[month - 1].capitalizedName) \(padded(Int64(year), 4)) "
      + "\(padded(time / 3_600)):\(padded(time / 60 % 60)):\(padded(time % 60)) GMT"
  }

  /// Returns whether a date is before another one.
  public static func < (left: HTTPDate, right: HTTPDate) -> Bool { left.seconds < right.seconds }

  /// The first second of the year 1 and the last one of the year 9999.
  private static let (first, last) = (
    day(year: 1, month: 1, day: 1) * 86_400, day(year: 9_999, month: 12, day: 31) * 86_400 + 86_399
  )

  private static let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
  private static let longDays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
  private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

  /// Creates a date from its numbers, or returns `nil` if there is no such date.
  private init?(year: Int, month: Int, day: Int, time: ArraySlice<UInt8>) {
    let start = time.startIndex
    guard year >= 1, day >= 1, day <= Self.dayCount(year: year, month: month), time[start + 2] == UInt8(ascii: ":"),
      time[start + 5] == UInt8(ascii: ":"), let hour = Self.number(time[start..<(start + 2)]), hour < 24,
      let minute = Self.number(time[(start + 3)..<(start + 5)]), minute < 60,
      let second = Self.number(time[(start + 6)..<(start + 8)]), second <= 60  // 60 is a leap second.
    else { return nil }
    let time = Int64(hour * 3_600 + minute * 60 + second)
    seconds = min(Self.day(year: year, month: month, day: day) * 86_400 + time, Self.last)
  }

  private static func isName(_ bytes: ArraySlice<UInt8>, in names: [String]) -> Bool {
    names.contains { isName(bytes, $0) }
  }

  private static func isName(_ bytes: ArraySlice<UInt8>, _ name: String) -> Bool {
    name.utf8.elementsEqual(bytes.lazy.map(\.lowercased))
  }

  private static func month(_ bytes: ArraySlice<UInt8>) -> Int? {
    months.firstIndex { isName(bytes, $0) }.map { $0 + 1 }
  }

  private static func isZone(_ bytes: ArraySlice<UInt8>) -> Bool { isName(bytes, " gmt") }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int? {
    var value = 0
    for byte in bytes {
      guard byte.isDigit else { return nil }
      value = value * 10 + Int(byte - UInt8(ascii: "0"))
    }
    return value
  }

  private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

  private static func dayCount(year: Int, month: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Returns the number of the days from 1970 to a date of the Gregorian calendar.
  private static func day(year: Int, month: Int, day: Int) -> Int64 {
    let before = year - 1
    var days = before * 365 + before / 4 - before / 100 + before / 400 - 719_162
    for earlier in 1..<month { days += dayCount(year: year, month: earlier) }
    return Int64(days + day - 1)
  }

  /// Returns the year of a day that is counted from 1970.
  ///
  /// Years outside 1 to 9999 become the nearest of them.
  private static func year(ofDay day: Int64) -> Int {
    let clamped = min(max(day, Self.day(year: 1, month: 1, day: 1)), Self.day(year: 9_999, month: 12, day: 31))
    // An estimate, which is corrected in both directions.
    var year = max(1, 1_969 + Int(clamped / 366))
    while year < 9_999, Self.day(year: year + 1, month: 1, day: 1) <= clamped { year += 1 }
    while year > 1, Self.day(year: year, month: 1, day: 1) > clamped { year -= 1 }
    return year
  }
}

extension String {
  /// The text with its first letter in upper case.
  fileprivate var capitalizedName: String { prefix(1).uppercased() + dropFirst() }
}
#endif
