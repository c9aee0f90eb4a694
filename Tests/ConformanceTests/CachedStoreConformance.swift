#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCache
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct CachedStoreConformance {
  typealias Options = CachedStoreConfiguration<SampleValue?>

  static let lacking: StoreCapabilities = [.persistence, .encoding]

  /// Options under which the cache keeps every entry that it sees and refreshes each of them.
  static var eager: Options {
    var options = Options()
    options.negativeTimeToLive = .seconds(3600)
    options.refreshAfter = .zero
    return options
  }

  static let memory = ConformanceSuite(named: "CachedStore of MemoryStore", lacking: lacking) { _ in
    MemoryStore<SampleValue?>().observable().cached()
  }

  static let single = ConformanceSuite(named: "CachedStore of one copy", lacking: lacking) { _ in
    AnyDataStore(MemoryStore<SampleValue?>().cached(Options(entryLimit: 1)).observable())
  }

  static let shuffled = ConformanceSuite(named: "CachedStore of FaultyStore, eager", lacking: lacking) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return MemoryStore<SampleValue?>().faulty(plan: plan).observable().cached(eager)
  }

  static let json = ConformanceSuite(named: "CachedStore of JSONFileStore") { location in
    try await JSONFileStore<SampleValue?>(
      path: location.path("store.json"), durability: .buffered, access: location.access
    ).cached().observable()
  }

  static let lmdb = ConformanceSuite(named: "CachedStore of LMDBStore") { location in
    try await LMDBStore<SampleValue?>(
      path: location.path("environment"), durability: .buffered, access: location.access
    ).cached()
  }

  static let stacked = ConformanceSuite(
    named: "a stack of caches of LMDBStore", lacking: .observation
  ) { location in
    let bytes = try await LMDBStore(
      path: location.path("environment"), codec: .raw, durability: .buffered, access: location.access)
    return AnyDataStore(
      AnyDataStore(bytes.cached().typed(SampleValue?.self, codec: .json()).cached(eager)).cached(Options(entryLimit: 2))
    )
  }

  @Test(arguments: memory.cases) func `conforms over memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: single.casesOfCombinations) func `conforms with one entry`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: shuffled.casesOfCombinations) func `conforms shuffled`(_ conformanceCase: ConformanceCase)
    async throws
  {
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

  @Test(arguments: stacked.casesOfCombinations) func `conforms in a stack`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }
}
#endif
