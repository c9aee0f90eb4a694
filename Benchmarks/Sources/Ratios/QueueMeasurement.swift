import Workloads

/// Measures the promises of a queue that need more than a comparison of workloads.
enum QueueMeasurement {
  /// Returns all selected measurements, as medians of several rounds.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    var measured: [Measured] = []
    let enqueuing = "enqueue of one producer into a QueueStore, .buffered"
    if isWanted(enqueuing) {
      var (enqueues, appends): ([Double], [Double]) = ([], [])
      for _ in 0..<5 {
        let folder = try ScratchFolder()
        enqueues.append(try await Queues.secondsOfBufferedEnqueue(in: folder))
        appends.append(try Queues.secondsOfBufferedAppend(in: folder))
        try folder.remove()
      }
      let append = appends.sorted()[2]
      measured.append(
        Measured(
          name: enqueuing, figure: enqueues.sorted()[2], unit: .seconds,
          yardsticks: [
            Measured.Yardstick(name: "append of the same number of bytes, by write", figure: append, limit: nil),
            Measured.Yardstick(
              name: "two appends, or a 300,000th of a second", figure: max(2 * append, 1.0 / 300_000), limit: 1),
          ]))
    }
    let draining = "draining a QueueStore of 1,000,000 items, the last tenth"
    if isWanted(draining) {
      var rounds: [(first: Double, last: Double)] = []
      for _ in 0..<3 {
        let folder = try ScratchFolder()
        rounds.append(try await Queues.secondsOfDraining(in: folder))
        try folder.remove()
      }
      let (first, last) = (rounds.map(\.first).sorted()[1], rounds.map(\.last).sorted()[1])
      measured.append(
        Measured(
          name: draining, figure: last, unit: .seconds,
          yardsticks: [Measured.Yardstick(name: "the first tenth", figure: first, limit: 1.3)]))
    }
    return measured
  }
}
