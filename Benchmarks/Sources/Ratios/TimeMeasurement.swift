import Workloads

/// Measures the time of workloads that alternate.
enum TimeMeasurement {
  /// Measures a subject and its yardsticks, in alternating rounds, after a warm-up round for each.
  ///
  /// It leaves the main actor, on which calls that wait for another thread cost more.
  @concurrent
  static func measure(_ comparison: Comparison) async throws -> Measured {
    let folder = try ScratchFolder()
    let workloads = [comparison.subject] + comparison.yardsticks.map(\.workload)
    var rounds: [Workload.Round] = []
    for workload in workloads {
      rounds.append(try await workload.prepare(folder))
    }
    var times: [[Double]] = workloads.map { _ in [] }
    for number in 0...comparison.roundCount {
      // Each workload begins in turn, so that none always follows the same other one.
      for place in workloads.indices {
        let index = (place + number) % workloads.count
        let duration = try await ContinuousClock().measure { try await rounds[index]() }
        guard number > 0 else { continue }
        times[index].append(duration / .seconds(1) / Double(workloads[index].operationCount))
      }
    }
    rounds = []
    try folder.remove()
    let medians = times.map(median)
    return Measured(
      name: comparison.subject.name, figure: medians[0], unit: .seconds,
      yardsticks: zip(comparison.yardsticks, medians.dropFirst()).map {
        Measured.Yardstick(name: $0.workload.name, figure: $1, limit: $0.limit)
      })
  }

  /// Returns the medians of workloads that alternate.
  static func medians(of workloads: [Workload]) async throws -> [Double] {
    let measured = try await measure(
      Comparison(workloads[0], beside: workloads.dropFirst().map { Comparison.Yardstick($0) }))
    return [measured.figure] + measured.yardsticks.map(\.figure)
  }

  private static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }
}
