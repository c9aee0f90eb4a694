import Foundation

/// What was measured of a subject and its yardsticks.
struct Measured {
  /// One of the yardsticks.
  struct Yardstick {
    let name: String
    let figure: Double
    let limit: Double?
  }

  /// How a figure is to be read.
  enum Unit {
    case seconds
    case bytes

    /// A figure for people to read.
    func text(of figure: Double) -> String {
      let steps: [(Double, String)] =
        switch self {
        case .seconds: [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
        case .bytes: [(1e6, "MB"), (1e3, "kB"), (1, "B")]
        }
      let step = steps.first { figure >= $0.0 } ?? steps[steps.count - 1]
      let scaled = figure / step.0
      return "\(scaled.formatted(.number.precision(.significantDigits(1...3)).grouping(.never))) \(step.1)"
    }
  }

  let name: String
  let figure: Double
  let unit: Unit
  let yardsticks: [Yardstick]
}
