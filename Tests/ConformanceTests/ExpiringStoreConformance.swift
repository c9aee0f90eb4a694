#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCBOR
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct ExpiringStoreConformance {
  private static let inMemory: StoreCapabilities = [.persistence, .encoding]

  static let memory = ConformanceSuite(named: "ExpiringStore over MemoryStore", lacking: inMemory) { _ in
    MemoryStore<Expiring<SampleValue?>>().observable().expiring()
  }

  /// The clock jitters by half of the window, so every other read moves the deadline.
  static let sliding = ConformanceSuite(named: "ExpiringStore over MemoryStore, sliding", lacking: inMemory) { _ in
    let isLater = Locked(false)
    return MemoryStore<Expiring<SampleValue?>>().expiring(.sliding(.seconds(100))) {
      Date(
        timeIntervalSince1970: isLater.withLock { isLater in
          isLater.toggle()
          return isLater ? 1050 : 1000
        })
    }.observable()
  }

  /// A store that also holds expired entries, which no case may notice.
  ///
  /// They include the lowest keys and fill many pages.
  static let amongExpired = ConformanceSuite(
    named: "ExpiringStore over a MemoryStore full of expired entries", lacking: inMemory
  ) { _ in
    let memory = MemoryStore<Expiring<SampleValue?>>()
    let past = ExpiryDeadline(.distantPast)
    let keys = (0..<300).map { StoreKey(bytes: [0, UInt8($0 % 256), UInt8($0 / 256)]) } + ["a", "b", "c", "k", "m"]
    try memory.apply(ChangeBatch(keys.map { .set($0, Expiring(SampleValue("expired"), deadline: past)) }))
    return memory.expiring(.after(.seconds(86_400))).observable()
  }

  static let shuffled = ConformanceSuite(named: "ExpiringStore over FaultyStore", lacking: inMemory) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return AnyDataStore(
      MemoryStore<Expiring<SampleValue?>>().faulty(plan: plan).observable().expiring(.after(.seconds(86_400))))
  }

  static let lmdb = ConformanceSuite(named: "ExpiringStore over LMDBStore", lacking: .keysWithoutValues) { location in
    try await LMDBStore(
      path: location.path("environment"), codec: .cbor(SampleValue?.self).expiring(), durability: .buffered,
      access: location.access
    ).expiring(.after(.seconds(86_400)))
  }

  static let json = ConformanceSuite(named: "ExpiringStore over JSONFileStore", lacking: .keysWithoutValues) {
    location in
    try await JSONFileStore(
      path: location.path("store.json"), codec: .json(SampleValue?.self).expiring(), durability: .buffered,
      access: location.access
    ).expiring(.sliding(.seconds(86_400))).observable()
  }

  static let view = ConformanceSuite(
    named: "ExpiringStore over a TypedView with checksums", lacking: [.persistence, .keysWithoutValues],
    maximumKeyLength: 511 - 2
  ) { _ in
    MemoryStore<[UInt8]>().observable()
      .typed(Expiring<SampleValue?>.self, prefix: "m/", codec: .json(SampleValue?.self).expiring().checksummed())
      .expiring()
  }

  @Test(arguments: memory.cases) func `conforms in memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: sliding.cases) func `conforms while sliding`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: amongExpired.cases) func `conforms among expired`(_ conformanceCase: ConformanceCase) async throws {
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

  @Test(arguments: json.casesOfCombinations) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: view.casesOfCombinations) func `conforms over a view`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }
}
#endif
