import Workloads

/// Measures for how long a purge lets other writers wait.
enum PurgeMeasurement {
  private static let recordCount = 1_000_000

  /// Purges a million records, and gives how long its updates took beside what they may take.
  ///
  /// The very longest is shown, but not judged: on a machine that does other things, too, it tells of these.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "update of a purge of 1,000,000 expired records in LMDB"
    guard isWanted(name) else { return [] }
    let seconds = try await Expiry.updates(purging: recordCount).map { $0 / .seconds(1) }
    func measured(_ which: String, _ place: Int, limit: Double?) -> Measured {
      Measured(
        name: "\(name), \(which)", figure: seconds[place], unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "what a writer may have to wait", figure: 0.010, limit: limit)])
    }
    return [
      measured("the median", seconds.count / 2, limit: 1),
      measured("999 of 1,000", seconds.count * 999 / 1000, limit: 1),
      measured("the longest", seconds.count - 1, limit: nil),
    ]
  }
}
