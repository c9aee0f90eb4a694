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
    let tenth = "of 1,000,000 items, the last tenth"
    try await addDraining("draining a QueueStore \(tenth)", limit: 1.3, where: isWanted, to: &measured) {
      try await Queues.secondsOfDraining(in: $0)
    }
    try await addDraining("draining a StoreQueue over LMDB \(tenth)", limit: 1.5, where: isWanted, to: &measured) {
      try await Queues.secondsOfDrainingInLMDB(in: $0)
    }
    return measured
  }

  private static func addDraining(
    _ name: String, limit: Double, where isWanted: (String) -> Bool, to measured: inout [Measured],
    _ drain: (ScratchFolder) async throws -> (first: Double, last: Double)
  ) async throws {
    guard isWanted(name) else { return }
    var rounds: [(first: Double, last: Double)] = []
    for _ in 0..<3 {
      let folder = try ScratchFolder()
      rounds.append(try await drain(folder))
      try folder.remove()
    }
    let (first, last) = (rounds.map(\.first).sorted()[1], rounds.map(\.last).sorted()[1])
    measured.append(
      Measured(
        name: name, figure: last, unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "the first tenth", figure: first, limit: limit)]))
  }
}
