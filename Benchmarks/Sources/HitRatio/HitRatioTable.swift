import Foundation

/// A table in Markdown that is printed row by row.
struct HitRatioTable {
  /// A row of the table.
  struct Row {
    let name: String
    let entries: Int
    /// The hit ratios, in percent, in the order of the policies.
    let ratios: [Double]
  }

  /// A row in a file for the program that draws the charts.
  private struct FileRow: Encodable {
    let name: String
    let entries: Int
    /// The hit ratios by policy, from 0 to 1.
    let ratios: [String: Double]
  }

  private let policies: [ComparedPolicy]
  private var rows: [Row] = []

  init(policies: [ComparedPolicy]) {
    self.policies = policies
    show(["Trace", "Entries"] + policies.map(\.title) + ["behind"])
    show(["---"] + Array(repeating: "---:", count: policies.count + 2))
  }

  /// Returns the hit ratio of `.adaptive`, or `nil` if the table does not show it.
  func adaptive(of row: Row) -> Double? {
    policies.firstIndex(of: .adaptive).map { row.ratios[$0] }
  }

  /// Returns how far `.adaptive` is behind the best other policy, in points, or `nil` without another policy.
  func lag(of row: Row) -> Double? {
    guard let adaptive = adaptive(of: row) else { return nil }
    let others = zip(policies, row.ratios).filter { $0.0 != .adaptive }.map(\.1)
    return others.max().map { $0 - adaptive }
  }

  mutating func append(_ row: Row) {
    rows.append(row)
    let figures = row.ratios.map(HitRatioTable.text) + [lag(of: row).map(HitRatioTable.text) ?? ""]
    show([row.name, row.entries.formatted(.number.grouping(.never))] + figures)
  }

  /// Writes all rows to a file, in JSON.
  func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    let fileRows = rows.map { row in
      FileRow(
        name: row.name, entries: row.entries,
        ratios: Dictionary(uniqueKeysWithValues: zip(policies.map(\.rawValue), row.ratios.map { $0 / 100 })))
    }
    try encoder.encode(fileRows).write(to: URL(filePath: path), options: .atomic)
  }

  private static func text(of figure: Double) -> String {
    figure.formatted(.number.precision(.fractionLength(2)))
  }

  // Not `print`, which buffers its output if it goes into a pipe.
  private func show(_ cells: [String]) {
    FileHandle.standardOutput.write(Data("| \(cells.joined(separator: " | ")) |\n".utf8))
  }
}
