import Workloads

/// Measures the cost of an HTTP cache in addition to that of its store.
enum HTTPCacheMeasurement {
  /// Measures the decision on a request, and hits over two stores, next to a get from a `MemoryStore`.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let get = FullStack.misses[0].workload
    var measured: [Measured] = []
    let decision = HTTPCaches.decision
    if isWanted(decision.name) {
      let times = try await TimeMeasurement.medians(of: [decision, get])
      measured.append(Measured(decision.name, times[0], beside: get, times[1], limit: 20))
    }
    for (name, hit, reads) in HTTPCaches.hits where isWanted(name) {
      let times = try await TimeMeasurement.medians(of: [hit, reads, get])
      measured.append(Measured(name, times[0] - times[1], beside: get, times[2], limit: 120))
    }
    return measured
  }
}
