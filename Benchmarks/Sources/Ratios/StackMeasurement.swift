import Workloads

/// Measures the cost of the layers of a stack, and the share of each.
enum StackMeasurement {
  /// Measures the metrics of an operation, and hits and misses through the full stack, next to a get from a `MemoryStore`.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let get = FullStack.misses[0].workload
    var measured: [Measured] = []
    for (name, with, without) in FullStack.metered where isWanted(name) {
      let times = try await TimeMeasurement.medians(of: [with, without, get])
      measured.append(Measured(name, times[0] - times[1], beside: get, times[2], limit: 1.25))
    }
    let hit = "hit through metrics, expiry and a cache"
    if isWanted(hit) {
      let times = try await TimeMeasurement.medians(of: FullStack.hits.map(\.workload) + [get])
      let hits = Array(times.dropLast())
      measured.append(Measured(hit, hits[hits.count - 1], beside: get, times[times.count - 1], limit: 3.5))
      measured += shares("a hit", layers: FullStack.hits.map(\.name), times: [0] + hits)
    }
    let miss = "cost of metrics, expiry, a cache, batching and metrics in a miss"
    if isWanted(miss) {
      let times = try await TimeMeasurement.medians(of: FullStack.misses.map(\.workload))
      measured.append(Measured(miss, times[times.count - 1] - times[0], beside: get, times[0], limit: 12.5))
      measured += shares("a miss", layers: FullStack.misses.dropFirst().map(\.name), times: times)
    }
    return measured
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
