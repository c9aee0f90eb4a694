import ExampleSupport

/// The recorded events, compared with the received ones.
struct Proof: CustomStringConvertible {
  /// The events that a client has reported as recorded, in this run or an earlier one.
  var recorded: Set<String>

  /// The events that the server has received.
  var intake: Collector.Intake

  /// The events that were recorded but never received.
  var lost: Set<String> { recorded.subtracting(intake.received) }

  /// A Boolean value that indicates whether no event was lost or received out of order.
  var holds: Bool {
    lost.isEmpty && intake.unorderedBatchCount == 0 && intake.refusedCount == 0
  }

  /// The result in words.
  private var verdict: String {
    guard !holds else { return "Every recorded event was received, in order within each batch." }
    let reasons = [
      ("Lost events", lost.count), ("Batches out of order", intake.unorderedBatchCount),
      ("Invalid requests", intake.refusedCount),
    ]
    return "The proof fails."
      + reasons.filter { $0.1 > 0 }.map { " \($0.0): \(TextFormat.count($0.1))." }.joined()
  }

  /// The result as text.
  var description: String {
    var table = TextTable(alignments: [.left, .right])
    let unsaid = intake.received.subtracting(recorded).count
    let faults = intake.faults
    for (name, count) in [
      ("Recorded and reported", recorded.count), ("Recorded, but killed before the report", unsaid),
      ("Received", intake.received.count), ("Received more than once", intake.duplicateCount), ("Lost", lost.count),
      ("Batches out of order", intake.unorderedBatchCount), ("Requests", intake.requestCount),
      ("  answered with 503", faults[.serverError] ?? 0), ("  cut off before reading", faults[.cutBefore] ?? 0),
      ("  accepted, cut off before the answer", faults[.cutBehind] ?? 0),
      ("  accepted, never answered", faults[.silence] ?? 0),
    ] {
      table.append([name, TextFormat.count(count)])
    }
    return "\(table)\n\n\(verdict)"
  }
}
