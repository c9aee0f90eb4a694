import Workloads

/// Measures the slowest of many puts, which a mean does not show.
enum PutLatencyMeasurement {
  /// Returns the medians of the 99th percentiles of several rounds, which alternate.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "p99 of a put of 1,000 tasks through .batched()"
    guard isWanted(name) else { return [] }
    var times: (batched: [Double], bare: [Double]) = ([], [])
    for _ in 0..<5 {
      let folder = try ScratchFolder()
      times.batched.append(try await BatchedPuts.secondsOfNinetyNinePercent(isBatched: true, in: folder))
      times.bare.append(try await BatchedPuts.secondsOfNinetyNinePercent(isBatched: false, in: folder))
      try folder.remove()
    }
    let (batched, bare) = (times.batched.sorted()[2], times.bare.sorted()[2])
    return [
      Measured(
        name: name, figure: batched, unit: .seconds,
        yardsticks: [
          Measured.Yardstick(name: "p99 of a put of a single task into the bare LMDBStore", figure: bare, limit: nil)
        ])
    ]
  }
}
