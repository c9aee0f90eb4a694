import Workloads

/// Measures the slowest of many insertions.
enum InsertionLatencyMeasurement {
  /// Measures insertions into a cache.
  static func comparisons(where isWanted: (String) -> Bool) -> [Measured] {
    let name = "insertion into a MemoryCache of 100,000 entries, 9,999 of 10,000"
    guard isWanted(name) else { return [] }
    let times = Caches.insertionTimes().sorted()
    let figure = times[times.count - 1 - times.count / 10_000]
    return [
      Measured(
        name: name, figure: figure, unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "limit", figure: 0.001, limit: 1)])
    ]
  }
}
