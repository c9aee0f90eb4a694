import Foundation

/// Prints a table in Markdown, line by line as the figures come.
struct HitRatioTable {
  /// A line.
  struct Row {
    let name: String
    let entries: Int
    /// In percent, in the order of the policies.
    let ratios: [Double]
  }

  private let policies: [ComparedPolicy]

  init(policies: [ComparedPolicy]) {
    self.policies = policies
    show(["Trace", "Entries"] + policies.map(\.title) + ["behind"])
    show(["---"] + Array(repeating: "---:", count: policies.count + 2))
  }

  /// The hit ratio of .adaptive; `nil` where it is not shown.
  func adaptive(of row: Row) -> Double? {
    policies.firstIndex(of: .adaptive).map { row.ratios[$0] }
  }

  /// How far .adaptive is behind the best of the others, in points; `nil` where there is nothing to compare.
  func lag(of row: Row) -> Double? {
    guard let adaptive = adaptive(of: row) else { return nil }
    let others = zip(policies, row.ratios).filter { $0.0 != .adaptive }.map(\.1)
    return others.max().map { $0 - adaptive }
  }

  func show(_ row: Row) {
    let figures = row.ratios.map(HitRatioTable.text) + [lag(of: row).map(HitRatioTable.text) ?? ""]
    show([row.name, row.entries.formatted(.number.grouping(.never))] + figures)
  }

  private static func text(of figure: Double) -> String {
    figure.formatted(.number.precision(.fractionLength(2)))
  }

  // Not by `print`: into a pipe, that shows nothing before the end.
  private func show(_ cells: [String]) {
    FileHandle.standardOutput.write(Data("| \(cells.joined(separator: " | ")) |\n".utf8))
  }
}
