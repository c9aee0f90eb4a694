#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ManualClock {
  /// The time of day that the clock shows: at its zero the first second of the year 2026, in UTC.
  ///
  /// It is for what goes by the clock on the wall: `{ clock.date }` tells it the time.
  public var date: Date {
    let (seconds, attoseconds) = now.offset.components
    return Date(timeIntervalSince1970: 1_767_225_600 + Double(seconds) + Double(attoseconds) / 1e18)
  }
}
