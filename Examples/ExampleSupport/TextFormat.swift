import Foundation

/// Numbers and times as people read them on a terminal.
package enum TextFormat {
  /// A count with its thousands apart: 12,345.
  package static func count(_ count: Int) -> String {
    let digits = String(count.magnitude)
    var text = count < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
      text.append(digit)
    }
    return text
  }

  /// A number of bytes in the largest fitting unit, by thousands: 12.3 MB.
  package static func bytes(_ bytes: Int64) -> String {
    var value = Double(bytes)
    var unit = "B"
    for larger in ["kB", "MB", "GB", "TB"] where value >= 999.95 {
      value /= 1000
      unit = larger
    }
    return unit == "B" ? "\(bytes) B" : String(format: "%.1f %@", value, unit)
  }

  /// A duration in microseconds, in milliseconds from one of them on, or in seconds from ten of them on.
  package static func duration(_ duration: Duration) -> String {
    let milliseconds = duration / .milliseconds(1)
    return switch milliseconds {
    case ..<0.99995: String(format: "%.1f µs", milliseconds * 1000)
    case ..<9999.95: String(format: "%.1f ms", milliseconds)
    default: String(format: "%.1f s", milliseconds / 1000)
    }
  }

  /// How many times as large something is: 1.07, or 1,234 from a hundred on.
  package static func factor(_ factor: Double) -> String {
    factor < 100 ? String(format: "%.2f", factor) : count(Int(factor.rounded()))
  }

  /// A part of a whole in percent: 98.7 %.
  package static func percent(_ part: Double) -> String {
    String(format: "%.1f %%", part * 100)
  }
}
