import LarderTesting
import Testing

@testable import LarderBatching

@Suite struct WriteBehindQueueTests {
  private typealias Step = WriteBehindQueueRun.Step

  /// Runs every continuation of a run by up to `steps` steps, and completes each of them.
  private func runAll(_ run: WriteBehindQueueRun, after history: [Step], steps: Int) throws -> Int {
    var last = run
    try check(history) { try last.drainAll() }
    guard steps > 0 else { return 1 }
    var count = 1
    for step in run.possibleSteps {
      var next = run
      try check(history + [step]) { try next.carryOut(step) }
      count += try runAll(next, after: history + [step], steps: steps - 1)
    }
    return count
  }

  private func check(_ history: [Step], _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let violation as WriteBehindQueueRun.Violation {
      Issue.record("\(violation.message), after \(history)")
      throw violation
    }
  }

  @Test func everyShortHistoryMatchesTheModel() throws {
    #expect(try runAll(WriteBehindQueueRun(), after: [], steps: 5) > 10_000)
  }

  @Test func longRandomHistoriesMatchTheModel() throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<500 {
      var run = WriteBehindQueueRun()
      var history: [Step] = []
      for _ in 0..<40 {
        let steps = run.possibleSteps.filter { $0 != .close || history.count > 30 }
        let step = steps[Int.random(in: steps.indices, using: &generator)]
        history.append(step)
        try check(history) { try run.carryOut(step) }
      }
      try check(history) { try run.drainAll() }
    }
  }
}
