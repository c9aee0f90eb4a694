import Larder
import LarderCache
import LarderObservation
import LarderTesting
import Testing

/// Concurrent histories through a cache, over a base that yields to other tasks and fails.
@Suite struct CachedStoreHistoryTests {
  private static func configuration(_ change: (inout CachedStoreConfiguration<Int>) -> Void)
    -> CachedStoreConfiguration<Int>
  {
    var configuration = CachedStoreConfiguration<Int>()
    change(&configuration)
    return configuration
  }

  private static let variants: [(name: String, configuration: CachedStoreConfiguration<Int>)] = [
    ("CachedStore", configuration { _ in }),
    ("CachedStore of one copy", configuration { $0.entryLimit = 1 }),
    (
      "CachedStore that keeps whatever it hears of",
      configuration {
        $0.negativeTimeToLive = .seconds(3600)
        $0.refreshAfter = .zero
      }
    ),
  ]

  private func run(
    _ index: Int, over base: @escaping @Sendable () -> some DataStore<Int> = { MemoryStore<Int>() }, mayFail: Bool
  ) async throws {
    let (name, configuration) = Self.variants[index]
    let trial = HistoryTrial(name) { _ in
      var plan = FaultPlan()
      plan.schedule(.yields(upTo: 4), probability: 1)
      for operation in mayFail ? [.value, .values, .entries, .apply, .update] as [StoreOperation] : [] {
        plan.schedule(.error(.ioFailed), on: operation, probability: 0.1)
        plan.schedule(.error(.timedOut, .after), on: operation, probability: 0.1)
      }
      return base().faulty(plan: plan).cached(configuration)
    }
    try await trial.runConcurrently(
      rounds: ConformanceSuite.roundsOfProcess, seed: SeededGenerator.seedOfProcess, mayFail: mayFail)
  }

  @Test(arguments: variants.indices) func `every history is linearizable`(_ variant: Int) async throws {
    try await run(variant, mayFail: false)
  }

  /// The reports of the cache's own writes.
  @Test(arguments: variants.indices) func `every history is linearizable over an observable base`(_ variant: Int)
    async throws
  {
    try await run(variant, over: { MemoryStore<Int>().observable() }, mayFail: variant == 2)
  }

  @Test(arguments: variants.indices) func `every history is linearizable if the base fails`(_ variant: Int) async throws
  {
    try await run(variant, mayFail: true)
  }
}
