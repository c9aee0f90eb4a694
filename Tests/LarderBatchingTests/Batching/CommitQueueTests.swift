import LarderTesting
import Testing

@testable import LarderBatching

@Suite struct CommitQueueTests {
  private typealias Step = CommitQueueRun.Step

  /// Runs every continuation of a run by so many steps, each to its end.
  private func runAll(_ run: CommitQueueRun, after history: [Step], steps: Int) throws -> Int {
    var last = run
    try check(history) { try last.drain() }
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
    } catch let violation as CommitQueueRun.Violation {
      Issue.record("\(violation.message), after \(history)")
      throw violation
    }
  }

  @Test func everyShortHistoryKeepsTheRules() throws {
    let count = try runAll(CommitQueueRun(limit: 2), after: [], steps: 6)
    #expect(count > 10_000)
  }

  @Test func longRandomHistoriesKeepTheRules() throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<300 {
      var run = CommitQueueRun(limit: 3)
      var history: [Step] = []
      for _ in 0..<40 {
        let steps = run.possibleSteps.filter { $0 != .close || history.count > 30 }
        let step = steps[Int.random(in: steps.indices, using: &generator)]
        history.append(step)
        try check(history) { try run.carryOut(step) }
      }
      try check(history) { try run.drain() }
    }
  }

  @Test func manyWhoLeaveLeaveNothingBehind() {
    var queue = CommitQueue<Int>(limit: BatchSize(changes: 10, bytes: .max))
    #expect(queue.arrive(.turn, -1) == .begins)
    for caller in 0..<10_000 {
      guard case .waits(let number) = queue.arrive(.write(BatchSize(changes: 1)), caller) else {
        Issue.record("\(caller) does not wait")
        return
      }
      #expect(queue.leave(number) == caller)
    }
    #expect(queue.endTurn().startsCommitter == false)
    #expect(queue.isIdle)
  }
}
