import ExampleSupport

/// The durations of the steps of the program.
struct StepTimes {
  /// A completed step.
  struct Step {
    var name: String
    var duration: Duration
    /// The number of entries that it processed, if applicable.
    var entryCount: Int?
  }

  private(set) var steps: [Step] = []

  /// Adds a step.
  mutating func note(_ name: String, since start: ContinuousClock.Instant, entryCount: Int? = nil) {
    steps.append(Step(name: name, duration: start.duration(to: .now), entryCount: entryCount))
  }

  /// A table of the steps with name, time, and entries per second.
  var table: TextTable {
    var table = TextTable(alignments: [.left, .right, .right, .right])
    for step in steps {
      let seconds = step.duration / .seconds(1)
      let rate = step.entryCount.map { Double($0) / max(seconds, 1e-6) }
      table.append([
        step.name, TextFormat.duration(step.duration), step.entryCount.map { "\(TextFormat.count($0)) entries" } ?? "",
        rate.map { "\(TextFormat.count(Int($0)))/s" } ?? "",
      ])
    }
    return table
  }
}
