#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct WriteBehindStoreConformance {
  static let lacking: StoreCapabilities = [.acknowledgedPersistence, .immediateRefusal]

  static let memory = ConformanceSuite(
    named: "WriteBehindStore over MemoryStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    MemoryStore<SampleValue?>().observable().writeBehind(maximumAge: .milliseconds(1))
  }

  static let json = ConformanceSuite(named: "WriteBehindStore over JSONFileStore", lacking: lacking) { location in
    try await JSONFileStore<SampleValue?>(path: location.path("store.json"), access: location.access).observable()
      .writeBehind(maximumAge: .milliseconds(2))
  }

  static let lmdb = ConformanceSuite(
    named: "WriteBehindStore over LMDBStore, behind AnyDataStore", lacking: lacking
  ) { location in
    AnyDataStore(
      try await LMDBStore<SampleValue?>(path: location.path("environment"), access: location.access).writeBehind(
        maximumAge: .milliseconds(2)))
  }

  static let shuffled = ConformanceSuite(
    named: "WriteBehindStore with little room over FaultyStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return MemoryStore<SampleValue?>().faulty(plan: plan).observable().writeBehind(
      bounds: BatchBounds(changes: 4), maximumAge: .microseconds(50))
  }

  static let stacked = ConformanceSuite(
    named: "WriteBehindStore over BatchingStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    MemoryStore<SampleValue?>().observable().batched().writeBehind(maximumAge: .microseconds(200))
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

  @Test(arguments: stacked.casesOfCombinations) func `conforms stacked`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  /// Concurrent operations are linearizable whatever the timing of flushes.
  @Test func `interleavings are linearizable`() async throws {
    let trial = HistoryTrial("WriteBehindStore over a slow base") { _ in
      var plan = FaultPlan()
      plan.schedule(.yields(upTo: 4), probability: 1)
      return MemoryStore<Int>().faulty(plan: plan).writeBehind(
        bounds: BatchBounds(changes: 6), maximumAge: .microseconds(5))
    }
    try await trial.runConcurrently(rounds: 150, seed: SeededGenerator.seedOfProcess, tasks: 6)
  }
}
#endif
