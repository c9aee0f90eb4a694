/// A point in time as text in the form of RFC 3339, like `2013-03-21T20:04:00.5+01:00`.
struct RFC3339Time {
  let secondsSince1970: Double

  /// Reads text.
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
    // Days since 1970 of the Gregorian calendar; years begin in March, so that a leap day is the last of its year.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    secondsSince1970 = Double(days * 86_400 + hour * 3600 + (minute - minutesEast) * 60 + second) + fraction
  }
}
