import Larder
import LarderCache
import LarderTesting
import Testing

/// Concurrent histories through a cache in another store, where both stores yield to other tasks and fail.
@Suite struct TieredStoreHistoryTests {
  private static func plan(mayFail: Bool) -> FaultPlan {
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 4), probability: 1)
    for operation in mayFail ? [.value, .values, .entries, .apply, .update, .keys] as [StoreOperation] : [] {
      plan.schedule(.error(.ioFailed), on: operation, probability: 0.1)
      plan.schedule(.error(.timedOut, .after), on: operation, probability: 0.1)
    }
    return plan
  }

  private func run(_ configuration: TieredStoreConfiguration, mayFail: Bool) async throws {
    let trial = HistoryTrial("TieredStore") { _ in
      try MemoryStore<Int>().faulty(plan: Self.plan(mayFail: mayFail)).cached(
        in: MemoryStore<[UInt8]>().faulty(plan: Self.plan(mayFail: mayFail)), codec: .json(Int.self),
        configuration: configuration)
    }
    try await trial.runConcurrently(
      rounds: ConformanceSuite.roundsOfProcess, seed: SeededGenerator.seedOfProcess, mayFail: mayFail)
  }

  @Test(arguments: [false, true]) func `every history is linearizable`(mayFail: Bool) async throws {
    try await run(TieredStoreConfiguration(timeToLive: .seconds(3600)), mayFail: mayFail)
  }

  @Test(arguments: [false, true]) func `every history of an eager cache is linearizable`(mayFail: Bool) async throws {
    try await run(
      TieredStoreConfiguration(
        timeToLive: .seconds(3600), refreshAfter: .nanoseconds(1), negativeTimeToLive: .seconds(3600)),
      mayFail: mayFail)
  }
}
