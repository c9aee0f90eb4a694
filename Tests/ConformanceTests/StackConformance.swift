#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderCompressedFile
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderObservation
import LarderQueue
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Whole stacks of decorators, in the order in which the guides recommend them.
@Suite(.limitedParallelism) struct StackConformance {
  private static let timeToLive = TimeToLive.after(.seconds(86_400))

  /// The number of random histories of each case.
  ///
  /// The layers' own suites run more.
  private static let rounds = ConformanceSuite.roundsOfProcess / 5

  /// A stack of all layers, from the outside in: metrics, observation, expiry, cache, batching, metrics, and the store.
  private static func stack<Base: DataStore, Kept: Sendable>(
    _ base: Base
  ) -> some DataStore<Kept> & ExpirableStore & InvalidatableStore & ObservableStore where Base.Value == Expiring<Kept> {
    base.metered(as: "backend", logger: nil).batched().cached().expiring(Self.timeToLive).observable().metered(
      as: "store", logger: nil)
  }

  /// The same stack with write-behind, outside of the cache, in place of batching.
  ///
  /// The observation is below it.
  private static func laterStack<Base: DataStore, Kept: Sendable>(
    _ base: Base
  ) -> some DataStore<Kept> & ExpirableStore & InvalidatableStore & FlushableStore & ObservableStore
  where Base.Value == Expiring<Kept> {
    base.observable().metered(as: "backend", logger: nil).cached().writeBehind(maximumAge: .microseconds(200))
      .expiring(Self.timeToLive).metered(as: "store", logger: nil)
  }

  /// A base that repeatedly yields to other tasks.
  private static func slow<Kept: Sendable>() -> FaultyStore<MemoryStore<Expiring<Kept>>> {
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return MemoryStore<Expiring<Kept>>().faulty(plan: plan)
  }

  static let json = ConformanceSuite(
    named: "a full stack over JSONFileStore", lacking: .keysWithoutValues, rounds: rounds
  ) { location in
    stack(
      try await JSONFileStore(
        path: location.path("store.json"), codec: .json(SampleValue?.self).expiring(), durability: .buffered,
        access: location.access))
  }

  static let compressed = ConformanceSuite(
    named: "a full stack over CompressedFileStore", lacking: .keysWithoutValues, rounds: rounds
  ) { location in
    stack(
      try await CompressedFileStore(
        path: location.path("store.gz"), codec: .json(SampleValue?.self).expiring(), durability: .buffered,
        access: location.access))
  }

  static let lmdb = ConformanceSuite(
    named: "a full stack over LMDBStore, behind AnyDataStore", lacking: .keysWithoutValues, rounds: rounds
  ) { location in
    AnyDataStore(
      stack(
        try await LMDBStore(
          path: location.path("environment"), codec: .cbor(SampleValue?.self).expiring(), durability: .buffered,
          access: location.access)))
  }

  static let sqlite = ConformanceSuite(
    named: "a full stack over SQLiteStore", lacking: .keysWithoutValues, rounds: rounds
  ) { location in
    stack(
      try await SQLiteStore(
        path: location.path("store.sqlite"), codec: .cbor(SampleValue?.self).expiring(), durability: .buffered,
        access: location.access))
  }

  static let queue = ConformanceSuite(
    named: "a full stack over QueueStore", lacking: .keysWithoutValues, rounds: rounds
  ) { location in
    stack(
      try await QueueStore(
        path: location.path("queue"), codec: .cbor(SampleValue?.self).expiring(), durability: .buffered,
        access: location.access))
  }

  static let memory = ConformanceSuite(
    named: "a full stack over a slow MemoryStore", lacking: MemoryStoreConformance.lacking, rounds: rounds
  ) { _ in
    stack(slow())
  }

  static let later = ConformanceSuite(
    named: "a full stack with write-behind", lacking: MemoryStoreConformance.lacking, rounds: rounds
  ) { _ in
    laterStack(MemoryStore<Expiring<SampleValue?>>())
  }

  @Test(arguments: json.casesOfCombinations) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: compressed.casesOfCombinations) func `conforms over one compressed file`(
    _ conformanceCase: ConformanceCase
  ) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: memory.cases) func `conforms in memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: lmdb.casesOfCombinations) func `conforms over LMDB`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: sqlite.casesOfCombinations) func `conforms over SQLite`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: queue.casesOfCombinations) func `conforms over a queue`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: later.casesOfCombinations) func `conforms with write behind`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  /// Concurrent operations are linearizable in every stack that the guide recommends.
  @Test func `interleavings are linearizable`() async throws {
    let seed = SeededGenerator.seedOfProcess
    let rounds = TestDepth.isShort ? 20 : 60
    try await HistoryTrial("a full stack over a slow base") { _ in
      Self.stack(Self.slow())
    }.runConcurrently(rounds: rounds, seed: seed, tasks: 6)
    try await HistoryTrial("a full stack with write-behind over a slow base") { _ in
      Self.laterStack(Self.slow())
    }.runConcurrently(rounds: rounds, seed: seed, tasks: 6)
    try await HistoryTrial("batching over a cache over a slow base") { _ in
      Self.slow().cached().batched().expiring(Self.timeToLive)
    }.runConcurrently(rounds: rounds, seed: seed, tasks: 6)
  }

  /// Power loss and failures at the operations of random histories, at the bottom of the stack.
  @Test func `a stack keeps its stores promises on a failing disk`() async throws {
    let trial = DiskTrial("a full stack over JSONFileStore") { disk in
      Self.stack(
        try await JSONFileStore(
          path: "/store.json", codec: .json(Int.self).expiring(), durability: .synced, fileSystem: disk))
    }
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (a full stack)")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "a full stack")
    #expect(try await trial.losePower(cuts: 60, seed: generator.next()) >= 60)
    #expect(try await trial.fail(faults: 30, seed: generator.next(), errorNumbers: [5, 28]) >= 30)
  }

  @Test func `the capabilities of every layer are reachable through a stack`() async throws {
    let memory = MemoryStore<Expiring<SampleValue?>>()
    let store = memory.metered(as: "backend", logger: nil).batched().cached().writeBehind().expiring(Self.timeToLive)
      .metered(as: "store", logger: nil)
    try await store.setValue(SampleValue("a"), forKey: "k")
    try await store.flush()
    #expect(try memory.value(forKey: "k") != nil)
    try await memory.setValue(Expiring(SampleValue("b")), forKey: "k")
    #expect(try await store.value(forKey: "k") == SampleValue("a"))
    try store.invalidate("k")
    #expect(try await store.value(forKey: "k") == SampleValue("b"))
    #expect(try await store.remainingTime(forKey: "k") == .never)
    #expect(try await store.touch("k", timeToLive: .after(.seconds(60))))
    #expect(try await store.remainingTime(forKey: "k") != .never)
    #expect(try await store.purgeExpired() == 0)
    try store.invalidateAll()
    let counts = store.report().operations.map { "\($0.name) \($0.count)" }
    #expect(
      counts == [
        "value 2", "apply 1", "touch 1", "remainingTime 2", "purgeExpired 1", "invalidate 1", "invalidateAll 1",
        "flush 1",
      ])
    #expect(
      "\(store)"
        == "MeteredStore[ExpiringStore[WriteBehindStore[CachedStore[BatchingStore[MeteredStore[\(memory)]]]]]]")
  }

  @Test func `maintenance is reachable through a stack and measured`() async throws {
    let location = try ConformanceLocation()
    let backend = try await LMDBStore(
      path: location.path("environment"), codec: .cbor(Int.self).expiring(), durability: .buffered
    ).metered(as: "backend", logger: nil)
    let store = backend.batched().cached().expiring(Self.timeToLive).metered(as: "store", logger: nil)
    try await store.setValue(1, forKey: "a")
    let maintenance = try #require(AnyDataStore(store).maintenance)
    let statistics = try await maintenance.storeStatistics()
    #expect(statistics.entryCount == 1)
    #expect(statistics.details.first?.name == "expiredEntries")
    #expect(try await maintenance.verify().findings.isEmpty)
    try await maintenance.backup(to: location.path("copy"), compacting: true)
    await expectStoreError(.unsupported) { try await maintenance.compact() }
    for report in [store.report(), backend.report()] {
      #expect(report["statistics"]?.count == 1)
      #expect(report["verify"]?.count == 1)
      #expect(report["backup"]?.count == 1)
      #expect(report["compact"]?.errors == ["unsupported": 1])
    }
    try await store.close()
    let copy = try await LMDBStore(path: location.path("copy"), codec: .cbor(Int.self).expiring())
    #expect(try copy.value(forKey: "a")?.value == 1)
    try await copy.close()
    try location.remove()
  }

  /// A write that was accepted and later abandoned reaches the handler, is thrown by a flush, and is counted by the
  /// meters.
  @Test func `write behind reports a failure in three ways`() async throws {
    let told = Locked<[StoreError.Code]>([])
    let base = MemoryStore<Expiring<Int>>().faulty()
    let backend = base.metered(as: "backend", logger: nil)
    let later = backend.cached().writeBehind { failure in told.withLock { $0.append(failure.error.code) } }
    let store = later.expiring(Self.timeToLive).metered(as: "store", logger: nil)
    base.schedule(.error(.ioFailed, outcome: .unknown), on: .apply)
    try await store.setValue(1, forKey: "k")
    await expectStoreError(.ioFailed) { try await store.flush() }

    #expect(told.withLock { $0 } == [.ioFailed])
    #expect(later.statistics().failedChanges == 1)
    #expect(store.report()["apply"]?.errors == [:])
    #expect(store.report()["flush"]?.errors == ["ioFailed": 1])
    #expect(backend.report()["apply"]?.errors == ["ioFailed": 1])
    #expect(try await store.value(forKey: "k") == nil)

    #expect(later.takeFailures().map(\.changes.count) == [1])
    try await store.flush()
    #expect(store.report()["flush"]?.count == 2)
    try await store.close()
  }
}
#endif
