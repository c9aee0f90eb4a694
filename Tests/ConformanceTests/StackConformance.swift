import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderTesting
import TestSupport
import Testing

/// Whole stacks of decorators, in the order in which the guides recommend them.
@Suite(.limitedParallelism) struct StackConformance {
  private static let lifetime = Expiration.after(.seconds(86_400))

  /// Everything there is, from the outside in: metrics, expiry, cache, batching, metrics, and the store.
  private static func stack<Base: DataStore>(
    _ base: Base
  ) -> some DataStore<SampleValue?> & ExpirableStore & InvalidatableStore
  where Base.Value == Expiring<SampleValue?> {
    base.metered(as: "backend", logger: nil).batched().cached().expiring(Self.lifetime).metered(
      as: "store", logger: nil)
  }

  static let expiringCachedJSON = ConformanceSuite(
    named: "ExpiringStore over CachedStore over JSONFileStore", lacking: .keysWithoutValues
  ) { location in
    try await JSONFileStore(
      path: location.path("store.json"), codec: .json(SampleValue?.self).expiring(), durability: .buffered
    ).cached().expiring(lifetime)
  }

  static let memory = ConformanceSuite(
    named: "a full stack over MemoryStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    stack(MemoryStore<Expiring<SampleValue?>>())
  }

  static let lmdb = ConformanceSuite(
    named: "a full stack over LMDBStore, behind AnyDataStore", lacking: .keysWithoutValues
  ) { location in
    AnyDataStore(
      stack(
        try await LMDBStore(
          path: location.path("environment"), codec: .cbor(SampleValue?.self).expiring(), durability: .buffered)))
  }

  static let shuffled = ConformanceSuite(
    named: "a full stack over FaultyStore", lacking: MemoryStoreConformance.lacking
  ) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return stack(MemoryStore<Expiring<SampleValue?>>().faulty(plan: plan))
  }

  @Test(arguments: expiringCachedJSON.cases) func conformsWithCachedJSON(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: memory.cases) func conformsInMemory(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: lmdb.cases) func conformsOverLMDB(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: shuffled.cases) func conformsShuffled(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  /// Power cuts and failures at the operations of random histories, below everything.
  @Test func aStackOnADiskThatFailsKeepsWhatItsStoreKeeps() async throws {
    let trial = DiskTrial("a full stack over JSONFileStore") { disk in
      try await JSONFileStore(
        path: "/store.json", codec: .json(Int.self).expiring(), durability: .synced, fileSystem: disk
      ).metered(as: "backend", logger: nil).batched().cached().expiring(Self.lifetime).metered(as: "store", logger: nil)
    }
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (a full stack)")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "a full stack")
    #expect(try await trial.losePower(cuts: 300, seed: generator.next()) >= 300)
    #expect(try await trial.fail(faults: 100, seed: generator.next(), errorNumbers: [5, 28]) >= 100)
  }

  /// The stack of the README, as it stands there.
  @Test func theStackOfTheReadmeWorks() async throws {
    struct Session: Codable, Sendable {
      var user: String
    }
    let location = try ConformanceLocation()
    let folder = location.folder
    let sessions = try await LMDBStore(path: folder + "/sessions", codec: .cbor(Session.self).expiring())
      .batched()  // many writers share a commit
      .cached()  // what is used most stays in memory
      .expiring(.sliding(.seconds(1800)))  // outside of the cache, or a hit could serve what has expired
      .metered()  // what callers see

    try await sessions.setValue(Session(user: "Ada"), forKey: "7f3a")
    try await sessions.touch("7f3a")
    print(sessions.report())
    #expect(try await sessions.value(forKey: "7f3a")?.user == "Ada")
    #expect(sessions.report()["touch"]?.count == 1)
    try await sessions.close()
    try location.remove()
    let missing = try Guide("README.md").piecesMissing().filter { $0.contains("let sessions") }
    #expect(missing == [])
  }

  @Test func theAbilitiesOfEveryLayerAreReachedFromOutside() async throws {
    let memory = MemoryStore<Expiring<SampleValue?>>()
    let store = memory.writeBehind().metered(as: "backend", logger: nil).batched().cached().expiring(Self.lifetime)
      .metered(as: "store", logger: nil)
    try await store.setValue(SampleValue("a"), forKey: "k")
    try await store.flush()
    #expect(try memory.value(forKey: "k") != nil)
    try await memory.setValue(Expiring(SampleValue("b")), forKey: "k")
    #expect(try await store.value(forKey: "k") == SampleValue("a"))
    try store.invalidate("k")
    #expect(try await store.value(forKey: "k") == SampleValue("b"))
    #expect(try await store.remainingTime(forKey: "k") == .unlimited)
    #expect(try await store.touch("k", lifetime: .limited(.seconds(60))))
    #expect(try await store.remainingTime(forKey: "k") != .unlimited)
    #expect(try await store.purgeExpired() == 0)
    try store.invalidateAll()
    #expect(
      "\(store)"
        == "MeteredStore[ExpiringStore[CachedStore[BatchingStore[MeteredStore[WriteBehindStore[\(memory)]]]]]]")
  }
}
