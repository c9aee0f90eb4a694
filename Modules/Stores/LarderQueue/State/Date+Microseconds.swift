#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Date {
  /// The microseconds since 1970, or as many as can be counted.
  var microseconds: Int64 {
    let microseconds = timeIntervalSince1970 * 1_000_000
    guard microseconds.magnitude < 9e18 else { return microseconds > 0 ? .max : .min }
    return Int64(microseconds + (microseconds < 0 ? -0.5 : 0.5))
  }

  /// The moment so many microseconds after the beginning of 1970.
  init(microseconds: Int64) {
    self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000)
  }
}
