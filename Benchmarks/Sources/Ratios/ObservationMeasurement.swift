import Workloads

/// Measures the delay with which an observer sees a change.
enum ObservationMeasurement {
  /// Compares the delay with the promised one, and with the put itself.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "put into a buffered LMDBStore until an awake observer has the value"
    guard isWanted(name) else { return [] }
    let folder = try ScratchFolder()
    let observed = try await Observation.medianSecondsUntilObserved(in: folder)
    let put = try await Observation.medianSecondsOfPut(in: folder)
    try folder.remove()
    return [
      Measured(
        name: name, figure: observed, unit: .seconds,
        yardsticks: [
          Measured.Yardstick(name: "100 µs", figure: 100e-6, limit: 1),
          Measured.Yardstick(name: "put without an observer", figure: put, limit: nil),
        ])
    ]
  }
}
