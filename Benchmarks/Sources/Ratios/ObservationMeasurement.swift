import Workloads

/// Measures the delay with which an observer sees a change.
enum ObservationMeasurement {
  /// Compares the delay with the promised one.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "from a commit of a buffered LMDBStore until an awake observer has the value"
    guard isWanted(name) else { return [] }
    let folder = try ScratchFolder()
    let observed = try await Observation.medianSecondsUntilObserved(in: folder)
    try folder.remove()
    return [
      Measured(
        name: name, figure: observed, unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "100 µs", figure: 100e-6, limit: 1)])
    ]
  }
}
