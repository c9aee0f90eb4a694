import Workloads

/// Measures for how long a purge lets other writers wait.
enum PurgeMeasurement {
  private static let recordCount = 1_000_000

  /// Purges a million records, and gives the longest of the updates beside what it may take.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "longest update of a purge of 1,000,000 expired records in LMDB"
    guard isWanted(name) else { return [] }
    let longest = try await Expiry.longestUpdate(purging: recordCount)
    return [
      Measured(
        name: name, figure: longest / .seconds(1), unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "what a writer may have to wait", figure: 0.010, limit: 1)])
    ]
  }
}
