#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct BatchingStoreConformance {
  static let memory = ConformanceSuite(
    named: "BatchingStore over MemoryStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    MemoryStore<SampleValue?>().observable().batched()
  }

  static let json = ConformanceSuite(named: "BatchingStore over JSONFileStore") { location in
    try await JSONFileStore<SampleValue?>(path: location.path("store.json"), access: location.access).batched()
      .observable()
  }

  static let lmdb = ConformanceSuite(named: "BatchingStore over LMDBStore, behind AnyDataStore") { location in
    AnyDataStore(
      try await LMDBStore<SampleValue?>(path: location.path("environment"), access: location.access).batched())
  }

  static let shuffled = ConformanceSuite(
    named: "BatchingStore with small groups over FaultyStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return MemoryStore<SampleValue?>().faulty(plan: plan).observable().batched(bounds: BatchBounds(changes: 3))
  }

  @Test(arguments: memory.cases) func `conforms over memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: json.casesOfCombinations) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: lmdb.casesOfCombinations) func `conforms over LMDB`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: shuffled.casesOfCombinations) func `conforms shuffled`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  /// Results stay accurate over a base that fails.
  ///
  /// A change that failed with `nothingChanged` had no effect.
  @Test func `results are accurate over a failing base`() async throws {
    let trial = HistoryTrial("BatchingStore over a failing base") { _ in
      var plan = FaultPlan()
      plan.schedule(.yields(upTo: 3), probability: 1)
      plan.schedule(.error(.encodingFailed), on: .apply, probability: 0.2)
      plan.schedule(.error(.ioFailed), on: .apply, probability: 0.1)
      plan.schedule(.error(.ioFailed, .after), on: .apply, probability: 0.1)
      plan.schedule(.error(.full), on: .update, probability: 0.1)
      return MemoryStore<Int>().faulty(plan: plan).batched(bounds: BatchBounds(changes: 6))
    }
    try await trial.runConcurrently(rounds: 150, seed: SeededGenerator.seedOfProcess, tasks: 6, mayFail: true)
  }
}
#endif
