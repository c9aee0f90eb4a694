import Foundation

/// A table in Markdown that is printed row by row.
struct RatioTable {
  /// The number of ratios above their limits.
  private(set) var missedCount = 0

  /// The figures of all rows.
  private(set) var measured: [Measured] = []

  init() {
    show(["Subject", "Median", "Yardstick", "Median", "Ratio", "Limit"])
    show(["---", "---:", "---", "---:", "---:", "---:"])
  }

  /// Prints the rows of a subject, one for each yardstick.
  mutating func append(_ measured: Measured) {
    self.measured.append(measured)
    for (index, yardstick) in measured.yardsticks.enumerated() {
      let ratio = measured.figure / yardstick.figure
      var limit = ""
      if let most = yardstick.limit {
        limit = most.formatted()
        if ratio > most {
          missedCount += 1
          limit += " **missed**"
        }
      }
      let subject = index == 0 ? [measured.name, measured.unit.text(of: measured.figure)] : ["", ""]
      let beside = [yardstick.name, measured.unit.text(of: yardstick.figure)]
      let shownRatio = ratio.formatted(.number.precision(ratio < 0.01 ? .significantDigits(2...2) : .fractionLength(2)))
      show(subject + beside + [shownRatio, limit])
    }
  }

  // Not `print`, which buffers its output if it goes into a pipe.
  private func show(_ cells: [String]) {
    FileHandle.standardOutput.write(Data("| \(cells.joined(separator: " | ")) |\n".utf8))
  }
}
