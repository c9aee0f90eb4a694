import Workloads

/// Measures what the layers of a stack add, and the share of each.
enum StackMeasurement {
  /// What metrics may add to an operation where nobody takes what they report, in seconds.
  private static let metricsLimit = 250e-9

  /// What a hit through the full stack may take, in seconds.
  private static let hitLimit = 0.7e-6

  /// What the full stack may add to a read of the store, in seconds.
  private static let missLimit = 2.5e-6

  /// Measures the metrics of an operation, and hits and misses through the full stack.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    var measured: [Measured] = []
    for (name, with, without) in FullStack.metered where isWanted(name) {
      let times = try await times([with, without])
      measured.append(comparison(name, times[0] - times[1], "what they may add", metricsLimit))
    }
    let hit = "hit through metrics, expiry and a cache"
    if isWanted(hit) {
      let times = try await times(FullStack.hits.map(\.workload))
      measured.append(comparison(hit, times[times.count - 1], "what it may take", hitLimit))
      measured += shares("a hit", layers: FullStack.hits.map(\.name), times: [0] + times)
    }
    let miss = "what metrics, expiry, a cache, batching and metrics add to a miss"
    if isWanted(miss) {
      let times = try await times(FullStack.misses.map(\.workload))
      measured.append(comparison(miss, times[times.count - 1] - times[0], "what they may add", missLimit))
      measured += shares("a miss", layers: FullStack.misses.dropFirst().map(\.name), times: times)
    }
    return measured
  }

  /// The medians of workloads that take turns.
  private static func times(_ workloads: [Workload]) async throws -> [Double] {
    let measured = try await TimeMeasurement.measure(
      Comparison(workloads[0], beside: workloads.dropFirst().map { Comparison.Yardstick($0) }))
    return [measured.figure] + measured.yardsticks.map(\.figure)
  }

  private static func comparison(_ name: String, _ figure: Double, _ limitName: String, _ limit: Double) -> Measured {
    Measured(
      name: name, figure: figure, unit: .seconds,
      yardsticks: [Measured.Yardstick(name: limitName, figure: limit, limit: 1)])
  }

  /// What each layer adds to the one below it, beside what all of them add.
  private static func shares(_ whole: String, layers: [String], times: [Double]) -> [Measured] {
    let sum = times[times.count - 1] - times[0]
    return layers.enumerated().map { index, layer in
      Measured(
        name: "of \(whole): \(layer)", figure: times[index + 1] - times[index], unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "all layers", figure: sum, limit: nil)])
    }
  }
}
