import Workloads

/// Measures how long the slowest of many operations take.
enum LatencyMeasurement {
  /// Measures insertions into a cache.
  static func comparisons(where isWanted: (String) -> Bool) -> [Measured] {
    let name = "insertion into a MemoryCache of 100,000 entries: the slowest but 100 of 1,000,000"
    guard isWanted(name) else { return [] }
    let times = Caches.insertionTimes().sorted()
    let figure = times[times.count - 1 - times.count / 10_000]
    return [
      Measured(
        name: name, figure: figure, unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "what it may be", figure: 0.001, limit: 1)])
    ]
  }
}
