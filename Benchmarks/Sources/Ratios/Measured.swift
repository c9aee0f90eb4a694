import Foundation
import Workloads

/// The figures of a subject and its yardsticks.
struct Measured: Encodable {
  /// The figure of a yardstick.
  struct Yardstick: Encodable {
    let name: String
    let figure: Double
    let limit: Double?
  }

  /// The unit of a figure.
  enum Unit: String, Encodable {
    case seconds
    case bytes

    /// Returns a figure as readable text.
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

extension Measured {
  /// Creates the figures of a time that is not that of one workload, next to a yardstick.
  init(_ name: String, _ figure: Double, beside yardstick: Workload, _ time: Double, limit: Double) {
    self.init(
      name: name, figure: figure, unit: .seconds,
      yardsticks: [Yardstick(name: yardstick.name, figure: time, limit: limit)])
  }
}
