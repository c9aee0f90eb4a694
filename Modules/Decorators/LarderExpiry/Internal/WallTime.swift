#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A moment by the clock on the wall, in microseconds.
///
/// Not a `Date`, whose floating-point number would have to be rounded each time that two of them are compared.
@usableFromInline
struct WallTime: Sendable, Hashable {
  /// A number of microseconds that an `Int64` holds, and far more than there ever will be.
  private static let limit = 9e18

  /// The microseconds since 1970.
  @usableFromInline
  let microseconds: Int64

  init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// Takes the microsecond that is nearest to a date, or the first or last that can be counted.
  init(_ date: Date) {
    let microseconds = date.timeIntervalSince1970 * 1_000_000
    // Not `rounded()`, which is a call into the library of C on machines without an instruction for it.
    let half = microseconds < 0 ? -0.5 : 0.5
    if microseconds.magnitude < WallTime.limit {
      self.microseconds = Int64(microseconds + half)
    } else {
      self.microseconds = microseconds > 0 ? .max : .min
    }
  }

  /// The moment as a date.
  var date: Date { Date(timeIntervalSince1970: Double(microseconds) / 1_000_000) }

  /// The moment so much later, or `nil` where that is later than can be counted.
  func advanced(byMicroseconds duration: Int64) -> WallTime? {
    let (sum, overflows) = microseconds.addingReportingOverflow(duration)
    return overflows ? nil : WallTime(microseconds: sum)
  }

  /// How many microseconds later another moment is, or as many as can be counted.
  func microseconds(until other: WallTime) -> Int64 {
    let (difference, overflows) = other.microseconds.subtractingReportingOverflow(microseconds)
    guard overflows else { return difference }
    return other > self ? .max : .min
  }
}

extension WallTime: Comparable {
  @inlinable
  static func < (left: WallTime, right: WallTime) -> Bool {
    left.microseconds < right.microseconds
  }
}
