#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderBounded
import LarderCBOR
import LarderCompression
import LarderCrypto
import LarderExpiry
import LarderLMDB
import LarderObservation
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// A bounded store whose limit never strikes is a store like any other.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct BoundedStoreConformance {
  /// The number of bytes by which the keys of records are longer than those of entries.
  private static let overhead = 2 + 1

  private static var configuration: BoundedStoreConfiguration {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 1
    configuration.useInterval = .zero
    return configuration
  }

  static let memory = ConformanceSuite(
    named: "BoundedStore over MemoryStore", lacking: .persistence, maximumKeyLength: 511 - overhead
  ) { _ in
    try await MemoryStore<[UInt8]>().observable().bounded(bytes: .max, entries: .max, configuration: configuration)
      .typed(SampleValue?.self, codec: .json())
  }

  static let shuffled = ConformanceSuite(
    named: "BoundedStore over FaultyStore", lacking: .persistence, maximumKeyLength: 511 - overhead
  ) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return AnyDataStore(
      try await MemoryStore<[UInt8]>().observable().faulty(plan: plan).bounded(
        bytes: .max, configuration: configuration
      )
      .typed(SampleValue?.self, codec: .json()))
  }

  static let stack = ConformanceSuite(
    named: "a stack over BoundedStore", lacking: [.persistence, .keysWithoutValues], maximumKeyLength: 511 - overhead
  ) { _ in
    try await MemoryStore<[UInt8]>().observable().bounded(bytes: .max, configuration: configuration)
      .typed(Expiring<SampleValue?>.self, codec: .json(SampleValue?.self).expiring()).batched().expiring()
  }

  static let lmdb = ConformanceSuite(
    named: "BoundedStore over LMDBStore", maximumKeyLength: 511 - overhead, child: { await start($0) },
    open: { try await open(at: $0) })

  private static func open(at location: ConformanceLocation) async throws -> TypedView<
    BoundedStore<LMDBStore<[UInt8]>>, SampleValue?
  > {
    try await LMDBStore(
      path: location.path("environment"), codec: .raw, durability: .buffered, access: location.access
    ).bounded(bytes: .max, configuration: configuration).typed(SampleValue?.self, codec: .cbor())
  }

  private static func start(_ order: String) async {
    await #expect(processExitsWith: .failure) { [order] in
      await ConformanceChild.run(order) { try await BoundedStoreConformance.open(at: $0) }
    }
  }

  /// Deadlines, compression and encryption are in the values, above the limit.
  static let sealed = ConformanceSuite(
    named: "a stack with encrypted values over a BoundedStore in SQLite", lacking: .keysWithoutValues, rounds: 5,
    maximumKeyLength: 511 - overhead
  ) { location in
    let codec = try await EncryptedCodecConformance.encrypted(.cbor(SampleValue?.self).expiring().compressed())
    return try await SQLiteStore(
      path: location.path("store.sqlite"), codec: .raw, durability: .buffered, access: location.access
    ).bounded(bytes: .max, configuration: configuration).typed(Expiring<SampleValue?>.self, codec: codec)
      .expiring(.after(.seconds(86_400)))
  }

  @Test(arguments: sealed.casesOfCombinations) func `conforms with encrypted values`(
    _ conformanceCase: ConformanceCase
  ) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: memory.cases) func `conforms in memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: shuffled.casesOfCombinations) func `conforms shuffled`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: stack.casesOfCombinations) func `conforms in a stack`(
    _ conformanceCase: ConformanceCase
  ) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: lmdb.casesOfCombinations) func `conforms over LMDB`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }
}
#endif
