import Workloads

/// Measures the cost of the layers of a stack, and the share of each.
enum StackMeasurement {
  /// The limit for the metrics of an operation without a backend, in seconds.
  private static let metricsLimit = 250e-9

  /// The limit for a hit through the full stack, in seconds.
  private static let hitLimit = 0.7e-6

  /// The limit for the cost of the full stack in addition to a read of the store, in seconds.
  private static let missLimit = 2.5e-6

  /// Measures the metrics of an operation, and hits and misses through the full stack.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    var measured: [Measured] = []
    for (name, with, without) in FullStack.metered where isWanted(name) {
      let times = try await TimeMeasurement.medians(of: [with, without])
      measured.append(comparison(name, times[0] - times[1], "limit", metricsLimit))
    }
    let hit = "hit through metrics, expiry and a cache"
    if isWanted(hit) {
      let times = try await TimeMeasurement.medians(of: FullStack.hits.map(\.workload))
      measured.append(comparison(hit, times[times.count - 1], "limit", hitLimit))
      measured += shares("a hit", layers: FullStack.hits.map(\.name), times: [0] + times)
    }
    let miss = "cost of metrics, expiry, a cache, batching and metrics in a miss"
    if isWanted(miss) {
      let times = try await TimeMeasurement.medians(of: FullStack.misses.map(\.workload))
      measured.append(comparison(miss, times[times.count - 1] - times[0], "limit", missLimit))
      measured += shares("a miss", layers: FullStack.misses.dropFirst().map(\.name), times: times)
    }
    return measured
  }

  private static func comparison(_ name: String, _ figure: Double, _ limitName: String, _ limit: Double) -> Measured {
    Measured(
      name: name, figure: figure, unit: .seconds,
      yardsticks: [Measured.Yardstick(name: limitName, figure: limit, limit: 1)])
  }

  /// Returns the cost of each layer in addition to the one below it, next to the cost of all layers.
  private static func shares(_ whole: String, layers: [String], times: [Double]) -> [Measured] {
    let sum = times[times.count - 1] - times[0]
    return layers.enumerated().map { index, layer in
      Measured(
        name: "of \(whole): \(layer)", figure: times[index + 1] - times[index], unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "all layers", figure: sum, limit: nil)])
    }
  }
}
