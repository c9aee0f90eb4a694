#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCBOR
import LarderIndexes
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// An indexed store is a store of values like any other, also when its indexes are large, unique or incomplete.
@Suite(.limitedParallelism) struct IndexedStoreConformance {
  /// Indexes of which one is unique, with several index keys for some values.
  ///
  /// Long keys leave no room for index entries.
  static var indexes: [StoreIndex<SampleValue?>] {
    [
      StoreIndex("text") { key, value in
        guard key.count <= 200, let value else { return [] }
        return value.text.prefix(20).split(separator: " ").map { [$0, key.count] }
      },
      StoreIndex("integer") { key, value in key.count <= 200 ? [[value?.integer]] : [] },
      StoreIndex("key", isUnique: true) { key, _ in key.count <= 200 ? [[key.bytes]] : [] },
    ]
  }

  static let memory = ConformanceSuite(
    named: "IndexedStore over MemoryStore", codec: .json(), lacking: .persistence, maximumKeyLength: 511 - 3
  ) { _, codec in
    try await MemoryStore<[UInt8]>().observable().indexed(by: indexes, codec: codec)
  }

  static let plain = ConformanceSuite(
    named: "IndexedStore without indexes", lacking: [.persistence, .observation], maximumKeyLength: 511 - 3
  ) { _ in
    AnyDataStore(try await MemoryStore<[UInt8]>().indexed(by: [], codec: .cbor(SampleValue?.self)))
  }

  static let shuffled = ConformanceSuite(
    named: "IndexedStore over FaultyStore", lacking: .persistence, maximumKeyLength: 511 - 3
  ) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return try await MemoryStore<[UInt8]>().observable().faulty(plan: plan)
      .indexed(by: indexes, codec: .json(SampleValue?.self))
  }

  static let lmdb = ConformanceSuite(
    named: "IndexedStore over LMDBStore", codec: .cbor(), maximumKeyLength: 511 - 7, child: { await start($0) },
    open: { try await open(at: $0, codec: $1) })

  private static func open(
    at location: ConformanceLocation, codec: some Codec<SampleValue?> = .cbor()
  ) async throws -> IndexedStore<
    LMDBStore<[UInt8]>, SampleValue?
  > {
    try await LMDBStore(
      path: location.path("environment"), codec: .raw, durability: .buffered, access: location.access
    ).indexed(by: indexes, codec: codec, valuePrefix: "note/v", indexPrefix: "note/i")
  }

  private static func start(_ order: String) async {
    await #expect(processExitsWith: .failure) { [order] in
      await ConformanceChild.run(order) { try await IndexedStoreConformance.open(at: $0) }
    }
  }

  @Test(arguments: memory.cases) func `conforms in memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: plain.casesOfCombinations) func `conforms without indexes`(
    _ conformanceCase: ConformanceCase
  ) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: shuffled.casesOfCombinations) func `conforms shuffled`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: lmdb.casesOfCombinations) func `conforms over LMDB`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }
}
#endif
