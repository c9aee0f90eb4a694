#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCache
import LarderMetrics
import LarderTesting
import TestSupport
import Testing

/// The reads of a `LoadingStore`, alone and below caches, keep the promises of those of any other store.
///
/// A `LoadingStore` itself can be neither written nor listed, so the suite writes beside it.
@Suite(.limitedParallelism) struct LoadingStoreConformance {
  /// A store whose entries are read through a `LoadingStore`.
  private struct LoadedReads: PassingStore {
    let base: MemoryStore<SampleValue?>
    let loading: LoadingStore<SampleValue?>

    init() {
      let memory = MemoryStore<SampleValue?>()
      base = memory
      loading = LoadingStore(name: memory.information.name) { try memory.value(forKey: $0) }
    }

    var information: StoreInformation {
      var information = base.information
      information.readsMayBeCopies = true
      return information
    }

    func value(forKey key: StoreKey) async throws -> SampleValue?? { try await loading.value(forKey: key) }
    func values(forKeys keys: [StoreKey]) async throws -> [SampleValue??] { try await loading.values(forKeys: keys) }

    func close() async throws {
      await loading.close()
      base.close()
    }
  }

  private static let lacking: StoreCapabilities = [.persistence, .encoding, .observation]

  /// The cases of a suite in which no read of several keys has to be a snapshot beside writers.
  private static func cases(_ suite: ConformanceSuite) -> [ConformanceCase] {
    suite.cases.filter { ![.concurrency, .histories].contains($0.group) && $0.number != 215 }
  }

  private static let alone = ConformanceSuite(named: "reads of a LoadingStore", lacking: lacking) { _ in LoadedReads() }

  private static let cached = ConformanceSuite(named: "CachedStore of a LoadingStore", lacking: lacking) { _ in
    LoadedReads().cached(CachedStoreConfiguration(negativeTimeToLive: .seconds(3600)))
  }

  private static let tiered = ConformanceSuite(named: "TieredStore of a LoadingStore", lacking: lacking) { _ in
    try LoadedReads().cached(
      in: MemoryStore<[UInt8]>(), codec: .json(SampleValue?.self),
      configuration: TieredStoreConfiguration(timeToLive: .seconds(3600), negativeTimeToLive: .seconds(3600)))
  }

  private static let metered = ConformanceSuite(named: "MeteredStore of a LoadingStore", lacking: lacking) { _ in
    LoadedReads().metered(as: "loading", logger: nil)
  }

  @Test(arguments: cases(alone) + cases(cached) + cases(tiered) + cases(metered))
  func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  // MARK: Caches of the store itself

  private struct Failure: Error {}

  @Test func `a cache in front loads each key once`() async throws {
    let calls = Calls()
    let store = LoadingStore<Int> { key in
      calls.add(key)
      if key == "bad" { throw Failure() }
      return key == "none" ? nil : key.count
    }
    let clock = ManualClock()
    let cached = store.metered(as: "downloads", logger: nil).cached(
      CachedStoreConfiguration(negativeTimeToLive: .seconds(5)), clock: clock)
    for _ in 0..<3 { #expect(try await cached.values(forKeys: ["ab", "none", "abc"]) == [2, nil, 3]) }
    #expect(calls.take().sorted() == ["ab", "abc", "none"])
    // Others can change what is loaded, so that an entry is used for a limited time.
    clock.advance(by: .seconds(60))
    #expect(try await cached.value(forKey: "ab") == 2)
    #expect(calls.take() == ["ab"])
    let error = await expectStoreError(.ioFailed) { try await cached.value(forKey: "bad") }
    #expect(error?.key == "bad" && error?.underlying is Failure)
    try cached.invalidate("ab")
    #expect(try await AnyDataStore(cached).value(forKey: "ab") == 2)
    #expect(calls.take() == ["bad", "ab"])
    await expectStoreError(.notPermitted) { try await cached.setValue(1, forKey: "ab") }
    await expectStoreError(.unsupported) { try await cached.keys(in: .all, limit: 1) }
    try await cached.close()
  }

  @Test func `a cache on disk needs a time to live`() async throws {
    let calls = Calls()
    let disk = MemoryStore<[UInt8]>()
    func open(_ configuration: TieredStoreConfiguration) throws -> TieredStore<LoadingStore<Int>, MemoryStore<[UInt8]>>
    {
      try LoadingStore<Int> { key in
        calls.add(key)
        return key == "none" ? nil : key.count
      }.cached(in: disk, codec: .json(), configuration: configuration)
    }
    expectStoreError(.invalidArgument) { try open(TieredStoreConfiguration()) }
    let configuration = TieredStoreConfiguration(timeToLive: .seconds(3600), negativeTimeToLive: .seconds(3600))
    let first = try open(configuration)
    #expect(try await first.values(forKeys: ["ab", "none"]) == [2, nil])
    while try disk.count(in: .all) < 2 { await Task.yield() }
    await expectStoreError(.notPermitted) { try await first.removeValue(forKey: "ab") }
    // The next process.
    let second = try open(configuration)
    #expect(try await second.values(forKeys: ["ab", "none"]) == [2, nil])
    #expect(calls.take().sorted() == ["ab", "none"])
    #expect(try await second.value(forKey: "ab", policy: .reload) == 2)
    try await second.invalidate("none")
    #expect(try await second.value(forKey: "none") == nil)
    #expect(calls.take() == ["ab", "none"])
    await expectStoreError(.unsupported) { try await second.count() }
  }

  /// The keys that were loaded.
  private final class Calls: Sendable {
    private let keys = Locked<[StoreKey]>([])

    func add(_ key: StoreKey) { keys.withLock { $0.append(key) } }

    func take() -> [StoreKey] {
      keys.withLock { keys in
        defer { keys = [] }
        return keys
      }
    }
  }
}
#endif
