import Workloads

/// Measures how long other writers wait for a purge.
enum PurgeMeasurement {
  private static let recordCount = 1_000_000

  /// Purges a million records, and compares the durations of the updates with their limit.
  ///
  /// The longest one has no limit, because it depends on other activity of the machine.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "update of a purge of 1,000,000 expired records in LMDB"
    guard isWanted(name) else { return [] }
    let seconds = try await Expiry.updates(purging: recordCount).map { $0 / .seconds(1) }
    func measured(_ which: String, _ place: Int, limit: Double?) -> Measured {
      Measured(
        name: "\(name), \(which)", figure: seconds[place], unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "limit for another writer's wait", figure: 0.010, limit: limit)])
    }
    return [
      measured("the median", seconds.count / 2, limit: 1),
      measured("999 of 1,000", seconds.count * 999 / 1000, limit: 1),
      measured("the longest", seconds.count - 1, limit: nil),
    ]
  }
}
