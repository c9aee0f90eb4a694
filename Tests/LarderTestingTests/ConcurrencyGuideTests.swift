import Larder
import LarderCache
import LarderTesting
import TestSupport
import Testing

private struct Overdrawn: Error {}

// snippet.one-order-of-many-3
private actor Account {
  private(set) var balance = 100

  /// A check, a suspension, and an act: another withdrawal can come in between.
  func withdraw(_ amount: Int) async -> Bool {
    guard balance >= amount else { return false }
    await record(amount)
    balance -= amount
    return true
  }

  private func record(_ amount: Int) async { await Task.yield() }
}
// snippet.end

/// The Swift code of the guide `Modules/Testing/LarderTesting/LarderTesting.docc/TestingConcurrentCode.md`.
@Suite(.enabled(if: ScheduledTrial.isAvailable)) struct ConcurrencyGuideTests {
  @Test func `an account`() async throws {
    func run() async throws {
      // snippet.one-order-of-many-2
      let trial = ScheduledTrial("two withdrawals") { _ in
        let account = Account()
        async let first = account.withdraw(80)
        async let second = account.withdraw(80)
        guard await [first, second].count(where: { $0 }) == 1 else { throw Overdrawn() }
      }
      try await trial.run(schedules: 100)
      // snippet.end
    }
    let failure = try #require(await #expect(throws: ScheduleFailure.self) { try await run() })
    #expect(failure.underlying is Overdrawn)

    let (trial, schedule) = (ScheduledTrial("nothing") { _ in }, failure.schedule)
    // snippet.one-order-of-many
    try await trial.replay(schedule)
    // snippet.end
  }

  @Test func `a decorator`() async throws {
    // snippet.your-own-store-decorator-or-actor
    let trial = ScheduledTrial("a cache") { context in
      var plan = FaultPlan(seed: context.seed)
      plan.schedule(.yields(upTo: 2), probability: 0.5)
      let history = HistoryTrial("a cache") { [plan] _ in
        MemoryStore<Int>().faulty(plan: plan, clock: context.clock).cached(clock: context.clock)
      }
      try await history.runConcurrently(rounds: 1, seed: context.seed, tasks: 3, length: 5)
    }
    // snippet.end
    try await trial.run(schedules: 20)
  }
}
