import ExampleSupport

/// What was recorded beside what was received.
struct Proof: CustomStringConvertible {
  /// The events of which a client has said that they are recorded, in this run or an earlier one.
  var recorded: Set<String>

  /// What the server has.
  var intake: Collector.Intake

  /// The events that were recorded and never received.
  var lost: Set<String> { recorded.subtracting(intake.received) }

  /// Whether nothing was lost and nothing came out of order.
  var holds: Bool {
    lost.isEmpty && intake.unorderedBatchCount == 0 && intake.refusedCount == 0
  }

  /// What is proved, or why nothing is.
  private var verdict: String {
    guard !holds else { return "Every event that was recorded has been received, in order within each batch." }
    let reasons = [
      ("Lost events", lost.count), ("Batches out of order", intake.unorderedBatchCount),
      ("Requests that made no sense", intake.refusedCount),
    ]
    return "The proof fails."
      + reasons.filter { $0.1 > 0 }.map { " \($0.0): \(TextFormat.count($0.1))." }.joined()
  }

  /// The proof for people to read.
  var description: String {
    var table = TextTable(alignments: [.left, .right])
    let unsaid = intake.received.subtracting(recorded).count
    let faults = intake.faults
    for (name, count) in [
      ("Recorded, and said so", recorded.count), ("Recorded, but killed before it could say so", unsaid),
      ("Received", intake.received.count), ("Received more than once", intake.duplicateCount), ("Lost", lost.count),
      ("Batches out of order", intake.unorderedBatchCount), ("Requests", intake.requestCount),
      ("  answered with 503", faults[.serverError] ?? 0), ("  cut off before they were read", faults[.cutBefore] ?? 0),
      ("  taken, and cut off before the answer", faults[.cutBehind] ?? 0),
      ("  taken, and never answered", faults[.silence] ?? 0),
    ] {
      table.append([name, TextFormat.count(count)])
    }
    return "\(table)\n\n\(verdict)"
  }
}
