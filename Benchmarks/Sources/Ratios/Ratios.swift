import Foundation
import Workloads

/// Measures the promises of Larder and their yardsticks, and prints the ratios as a table in Markdown.
///
/// The rounds of a subject and its yardsticks alternate in one process, so that other activity of the machine affects
/// all of them. The ratio is that of the medians.
@main
enum Ratios {
  static func main() async throws {
    let filters = CommandLine.arguments.dropFirst()
    func isWanted(_ name: String) -> Bool {
      filters.isEmpty || filters.contains { name.localizedStandardContains($0) }
    }

    var table = RatioTable()
    for comparison in Comparison.all where isWanted(comparison.subject.name) {
      table.append(try await TimeMeasurement.measure(comparison))
    }
    for comparison in try await StackMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await PutLatencyMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await MainActorMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await QueueMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await ObservationMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await EncryptionMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await PurgeMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try SizeMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await CompressedFileMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in InsertionLatencyMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    for comparison in try await MemoryMeasurement.comparisons(where: isWanted) {
      table.append(comparison)
    }
    guard table.missedCount == 0 else {
      FileHandle.standardError.write(Data("ratios: \(table.missedCount) above the limit\n".utf8))
      exit(1)
    }
  }
}
