import Foundation
import Larder

/// Numbers, times and paths as people read them on a terminal.
enum TextFormat {
  /// A count with its thousands apart: 12,345.
  static func count(_ count: Int) -> String {
    let digits = String(count.magnitude)
    var text = count < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
      text.append(digit)
    }
    return text
  }

  /// A number of bytes in the largest fitting unit, by thousands: 12.3 MB.
  static func bytes(_ bytes: Int64) -> String {
    var value = Double(bytes)
    var unit = "B"
    for larger in ["kB", "MB", "GB", "TB"] where value >= 999.95 {
      value /= 1000
      unit = larger
    }
    return unit == "B" ? "\(bytes) B" : String(format: "%.1f %@", value, unit)
  }

  /// A duration in milliseconds, or in seconds from ten of them on.
  static func duration(_ duration: Duration) -> String {
    let milliseconds = duration / .milliseconds(1)
    return milliseconds < 10_000
      ? String(format: "%.1f ms", milliseconds) : String(format: "%.1f s", milliseconds / 1000)
  }

  /// A duration with three digits, in the unit that suits it: 1.23 µs.
  static func shortDuration(_ duration: Duration) -> String {
    let nanoseconds = duration / .nanoseconds(1)
    for (unit, size) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] where nanoseconds >= size {
      let value = nanoseconds / size
      return String(format: value < 10 ? "%.2f %@" : value < 100 ? "%.1f %@" : "%.0f %@", value, unit)
    }
    return String(format: "%.0f ns", nanoseconds)
  }

  /// A path, fit for a terminal whatever bytes it has.
  static func path(_ path: StoreKey) -> String {
    guard let text = path.string, !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { return path.description }
    return text
  }

  /// A moment to the second: 2026-04-14 09:30:00Z.
  static func time(_ time: FileTime) -> String {
    Date(timeIntervalSince1970: Double(time.seconds)).formatted(Date.ISO8601FormatStyle(dateTimeSeparator: .space))
  }
}
