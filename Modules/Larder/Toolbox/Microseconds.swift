public import Foundation

extension Duration {
  /// The duration in microseconds, rounded up and clamped to the range of the type.
  ///
  /// Formats of stores keep durations in this unit. A deadline is never earlier than the duration says.
  public var wholeMicroseconds: Int64 {
    // Not by `components`, which traps if the seconds do not fit in an `Int64`.
    let (whole, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000)
    return Int64(clamping: rest > 0 ? whole + 1 : whole)
  }
}

extension Int64 {
  /// Returns the sum, clamped to the range of the type.
  ///
  /// - Parameter other: The number to add.
  public func addingSaturating(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }
}

extension Date {
  /// The time in microseconds since 1970, clamped to the range of the type.
  ///
  /// Formats of stores keep times in this unit, in UTC and without leap seconds.
  public var microsecondsSince1970: Int64 {
    let microseconds = timeIntervalSince1970 * 1_000_000
    guard microseconds.magnitude < 9e18 else { return microseconds > 0 ? .max : .min }
    // `rounded()` calls into the C library on machines without an instruction for it.
    return Int64(microseconds + (microseconds < 0 ? -0.5 : 0.5))
  }

  /// Creates a date from a time in microseconds since 1970.
  ///
  /// - Parameter microseconds: The time, such as ``microsecondsSince1970``.
  public init(microsecondsSince1970 microseconds: Int64) {
    self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000)
  }
}
