import Foundation
import Workloads

/// Measures `LarderPostgres` on a PostgreSQL server that is started for the run.
enum PostgresMeasurement {
  /// The limit for the wait of a consumer until it has an item, in seconds.
  private static let wakingLimit = 0.050

  /// Measures what is selected.
  ///
  /// On machines without PostgreSQL, it says so and measures nothing.
  ///
  /// - Parameters:
  ///   - isWanted: A closure that returns whether the measurement of a name is selected.
  ///   - report: A closure that receives each measurement when it is finished.
  static func measure(where isWanted: (String) -> Bool, _ report: (Measured) -> Void) async throws {
    let receiving = "receive from a PostgresQueue that 1,000,000 items have gone through"
    let waking = "from the enqueue of an item until another PostgresDatabase's waiting consumer has it"
    let wanted = PostgresComparison.all.filter { isWanted($0.name) }
    let names = wanted.map(\.name) + [receiving, waking].filter(isWanted)
    guard !names.isEmpty else { return }
    guard PostgresComparison.isPossible else {
      let list = names.map { "\n  \($0)" }.joined()
      FileHandle.standardError.write(Data("ratios: PostgreSQL is not installed, so not measured:\(list)\n".utf8))
      return
    }
    for comparison in wanted {
      let medians = try await comparison.medians()
      report(
        Measured(
          name: comparison.name, figure: medians.subject, unit: .seconds,
          yardsticks: [
            Measured.Yardstick(name: comparison.yardstick, figure: medians.yardstick, limit: comparison.limit)
          ]))
    }
    if isWanted(receiving) {
      let medians = try await PostgresQueues.secondsOfReceiving()
      for (name, figure, limit) in [
        ("before autovacuum", medians.used, nil as Double?), ("after autovacuum", medians.vacuumed, 1.5),
      ] {
        report(
          Measured(
            name: "\(receiving), \(name)", figure: figure, unit: .seconds,
            yardsticks: [Measured.Yardstick(name: "receive from a new one", figure: medians.new, limit: limit)]))
      }
    }
    if isWanted(waking) {
      let times = try await PostgresQueues.secondsOfWaking()
      // The longest one depends on what else the machine does.
      for (name, figure, limit) in [
        ("the median", times[times.count / 2], 1), ("the longest of 100", times[times.count - 1], nil as Double?),
      ] {
        report(
          Measured(
            name: "\(waking), \(name)", figure: figure, unit: .seconds,
            yardsticks: [Measured.Yardstick(name: "limit", figure: wakingLimit, limit: limit)]))
      }
    }
  }
}
