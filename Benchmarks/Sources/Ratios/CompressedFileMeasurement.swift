import Foundation
import Workloads

/// Measures the size of a `CompressedFileStore` of real records, and the time to read one of them.
enum CompressedFileMeasurement {
  /// Measures a store of the package index.
  ///
  /// On machines without one, it says so and measures nothing.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let size = "size of a compacted CompressedFileStore of 60,000 package records"
    let read = "read of one of them, its block not in memory"
    guard isWanted(size) || isWanted(read) else { return [] }
    guard let figures = try await CompressedFiles.measure() else {
      FileHandle.standardError.write(
        Data("ratios: no package index of apt with 60,000 records, so not measured: \(size)\n".utf8))
      return []
    }
    return [
      Measured(
        name: size, figure: Double(figures.store), unit: .bytes,
        yardsticks: [
          Measured.Yardstick(name: "the same lines by gzip -6", figure: Double(figures.gzip), limit: 1.25),
          Measured.Yardstick(name: "a JSONFileStore of them", figure: Double(figures.json), limit: 1.0 / 3),
        ]),
      Measured(
        name: read, figure: figures.read / .seconds(1), unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "limit", figure: 100e-6, limit: 1)]),
    ]
  }
}
