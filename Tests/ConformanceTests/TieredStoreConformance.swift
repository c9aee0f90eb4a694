#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBounded
import LarderCache
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// A store with a cache in another store is a store like its base.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct TieredStoreConformance {
  private static let configuration = TieredStoreConfiguration(
    timeToLive: .seconds(3600), refreshAfter: .nanoseconds(1), negativeTimeToLive: .seconds(3600))

  static let memory = ConformanceSuite(
    named: "TieredStore of MemoryStore", lacking: [.persistence, .encoding]
  ) { _ in
    try MemoryStore<SampleValue?>().observable().cached(
      in: MemoryStore<[UInt8]>(), codec: .json(SampleValue?.self), configuration: configuration)
  }

  /// The cache stays beside the base, so a reopened store begins with its copies.
  static let json = ConformanceSuite(
    named: "TieredStore of JSONFileStore in LMDBStore", lacking: .ownFiles
  ) { location in
    let cache = try await LMDBStore(path: location.path("cache"), codec: .raw, durability: .buffered)
      .bounded(bytes: 10_000_000)
    return try await JSONFileStore<SampleValue?>(
      path: location.path("store.json"), durability: .buffered, access: location.access
    ).observable().cached(in: cache, codec: .json(SampleValue?.self), configuration: configuration)
  }

  @Test(arguments: memory.cases) func `conforms over memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: json.casesOfCombinations) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }
}
#endif
