import Workloads

/// Measures the cost of an HTTP cache in addition to that of its store.
enum HTTPCacheMeasurement {
  /// The limit for a decision, in seconds.
  private static let decisionLimit = 3e-6

  /// The limit for the cost of a hit of 1 KB in addition to the reads of the store, in seconds.
  private static let hitLimit = 15e-6

  /// Measures the decision on a request, and hits over two stores.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    var measured: [Measured] = []
    let decision = HTTPCaches.decision
    if isWanted(decision.name) {
      measured.append(comparison(decision.name, try await TimeMeasurement.medians(of: [decision])[0], decisionLimit))
    }
    for (name, hit, reads) in HTTPCaches.hits where isWanted(name) {
      let times = try await TimeMeasurement.medians(of: [hit, reads])
      measured.append(comparison(name, times[0] - times[1], hitLimit))
    }
    return measured
  }

  private static func comparison(_ name: String, _ figure: Double, _ limit: Double) -> Measured {
    Measured(
      name: name, figure: figure, unit: .seconds,
      yardsticks: [Measured.Yardstick(name: "limit", figure: limit, limit: 1)])
  }
}
