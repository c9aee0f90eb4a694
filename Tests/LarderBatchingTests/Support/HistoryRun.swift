import LarderTesting
import Testing

/// A state machine that is driven step by step and checks itself after each step.
protocol HistoryRun {
  /// An event.
  associatedtype Step: Hashable

  /// The event that closes the state machine.
  ///
  /// Long random histories begin with other events.
  static var closing: Step { get }

  /// Every event that may happen now.
  var possibleSteps: [Step] { get }

  /// Carries out an event.
  ///
  /// - Throws: ``Violation``.
  mutating func carryOut(_ step: Step) throws

  /// Completes all work, and checks that every caller received its outcome.
  ///
  /// - Throws: ``Violation``.
  mutating func complete() throws
}

/// A violated invariant.
struct Violation: Error {
  let message: String
}

extension HistoryRun {
  /// Throws ``Violation`` unless a condition holds.
  func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(message: message()) }
  }

  /// Runs every continuation by up to `steps` steps, and completes each of them.
  ///
  /// - Returns: The number of histories.
  func runEveryHistory(after history: [Step] = [], steps: Int) throws -> Int {
    var last = self
    try Self.check(history) { try last.complete() }
    guard steps > 0 else { return 1 }
    var count = 1
    for step in possibleSteps {
      var next = self
      try Self.check(history + [step]) { try next.carryOut(step) }
      count += try next.runEveryHistory(after: history + [step], steps: steps - 1)
    }
    return count
  }

  /// Runs random histories of 40 steps, and completes each of them.
  static func runRandomHistories(_ count: Int, start: () -> Self) throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<count {
      var run = start()
      var history: [Step] = []
      for _ in 0..<40 {
        let steps = run.possibleSteps.filter { $0 != closing || history.count > 30 }
        let step = steps[Int.random(in: steps.indices, using: &generator)]
        history.append(step)
        try check(history) { try run.carryOut(step) }
      }
      try check(history) { try run.complete() }
    }
  }

  private static func check(_ history: [Step], _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let violation as Violation {
      Issue.record("\(violation.message), after \(history)")
      throw violation
    }
  }
}
