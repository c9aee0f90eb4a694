import Foundation

/// Numbers and times as readable text.
package enum TextFormat {
  /// Returns a count with thousands separators: 12,345.
  package static func count(_ count: Int) -> String {
    let digits = String(count.magnitude)
    var text = count < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
      text.append(digit)
    }
    return text
  }

  /// Returns a number of bytes in the largest fitting decimal unit: 12.3 MB.
  package static func bytes(_ bytes: Int64) -> String {
    var value = Double(bytes)
    var unit = "B"
    for larger in ["kB", "MB", "GB", "TB"] where value >= 999.95 {
      value /= 1000
      unit = larger
    }
    return unit == "B" ? "\(bytes) B" : String(format: "%.1f %@", value, unit)
  }

  /// Returns a duration in microseconds, in milliseconds from 1 ms, or in seconds from 10 s.
  package static func duration(_ duration: Duration) -> String {
    let milliseconds = duration / .milliseconds(1)
    return switch milliseconds {
    case ..<0.99995: String(format: "%.1f µs", milliseconds * 1000)
    case ..<9999.95: String(format: "%.1f ms", milliseconds)
    default: String(format: "%.1f s", milliseconds / 1000)
    }
  }

  /// Returns a factor: 1.07, or 1,234 from 100.
  package static func factor(_ factor: Double) -> String {
    factor < 100 ? String(format: "%.2f", factor) : count(Int(factor.rounded()))
  }

  /// Returns a share in percent: 98.7 %.
  package static func percent(_ part: Double) -> String {
    String(format: "%.1f %%", part * 100)
  }
}
