import ArgumentParser
import Foundation
import Workloads

/// Measures the promises of Larder and their yardsticks, and prints the ratios as a table in Markdown.
///
/// The rounds of a subject and its yardsticks alternate in one process, so other activity of the machine affects all of
/// them. The ratio is that of the medians.
@main
struct Ratios: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ratios",
    abstract: "Measure Larder next to yardsticks, and print the ratios of the medians.",
    discussion: "The exit status is 1 if a ratio exceeds its limit.")

  @Argument(help: "Measure only the lines whose names contain one of these words.")
  var words: [String] = []

  @Option(help: ArgumentHelp("Also write the figures to a file, in JSON.", valueName: "file"))
  var json: String?

  func run() async throws {
    let words = words
    func isWanted(_ name: String) -> Bool {
      words.isEmpty || words.contains { name.localizedStandardContains($0) }
    }

    var table = RatioTable()
    for comparison in Comparison.all where isWanted(comparison.subject.name) {
      table.append(try await TimeMeasurement.measure(comparison))
    }
    for measured in try await StackMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await PutLatencyMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await MainActorMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await QueueMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await ObservationMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await EncryptionMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await HTTPCacheMeasurement.comparisons(where: isWanted) { table.append(measured) }
    try await PostgresMeasurement.measure(where: isWanted) { table.append($0) }
    for measured in try await PurgeMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try SizeMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await CompressedFileMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in InsertionLatencyMeasurement.comparisons(where: isWanted) { table.append(measured) }
    for measured in try await MemoryMeasurement.comparisons(where: isWanted) { table.append(measured) }
    if let json { try Report(table.measured).write(to: json) }
    guard table.missedCount == 0 else {
      FileHandle.standardError.write(Data("ratios: \(table.missedCount) above the limit\n".utf8))
      throw ExitCode.failure
    }
  }
}

/// The figures of a run with their circumstances, as a file for the program that draws the charts.
private struct Report: Encodable {
  private let date = Date.now
  private let cores = ProcessInfo.processInfo.activeProcessorCount
  private let system = ProcessInfo.processInfo.operatingSystemVersionString
  private let measured: [Measured]

  init(_ measured: [Measured]) {
    self.measured = measured
  }

  func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    try encoder.encode(self).write(to: URL(filePath: path), options: .atomic)
  }
}
