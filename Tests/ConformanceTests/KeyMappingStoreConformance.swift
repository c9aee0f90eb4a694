#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCache
import LarderExpiry
import LarderJSON
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct KeyMappingStoreConformance {
  private static let inMemory: StoreCapabilities = [.persistence, .encoding]

  /// The part of one tenant, among keys of others that are just before and behind its own.
  static let besideOthers = ConformanceSuite(
    named: "KeyMappingStore of MemoryStore", lacking: inMemory, maximumKeyLength: 511 - 2
  ) { _ in
    let all = MemoryStore<SampleValue?>()
    for key in ["m", "m.", "m.~", "m/", "m0"] as [StoreKey] {
      try await all.setValue(SampleValue("other"), forKey: key)
    }
    return all.observable().prefixed(by: "m/")
  }

  static let json = ConformanceSuite(
    named: "KeyMappingStore of JSONFileStore", maximumKeyLength: 511 - 3
  ) { location in
    try await JSONFileStore<SampleValue?>(path: location.path("store.json"), access: location.access).observable()
      .prefixed(by: StoreKey(bytes: [0xFF, 0xFF, 0xFF]))
  }

  static let stack = ConformanceSuite(
    named: "KeyMappingStore of a stack", lacking: inMemory, maximumKeyLength: 511 - 2
  ) { _ in
    MemoryStore<Expiring<SampleValue?>>().observable().cached().expiring().prefixed(by: "m/")
  }

  @Test(arguments: besideOthers.cases) func `conforms beside others`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: json.casesOfCombinations) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: stack.casesOfCombinations) func `conforms over a stack`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  /// A decorator that leads a capability to other keys than its reads fails the suite.
  @Test func `a capability with other keys is found`() async throws {
    let suite = ConformanceSuite(
      named: "ForgetfulStore", lacking: Self.inMemory.union(.observation), maximumKeyLength: 511 - 2
    ) { _ in
      ForgetfulStore(base: MemoryStore<Expiring<SampleValue?>>().expiring())
    }
    let cached = ConformanceSuite(
      named: "ForgetfulStore, cached", lacking: Self.inMemory.union(.observation), maximumKeyLength: 511 - 2
    ) { _ in
      ForgetfulStore(base: MemoryStore<SampleValue?>().cached())
    }
    for (suite, id) in [(suite, "288a"), (suite, "288b"), (cached, "288c")] {
      let detector = try #require(suite.cases.first { $0.id == id })
      await #expect(throws: ConformanceFailure.self) { try await detector.run() }
    }
  }

  /// A tenant that reads, writes, touches, invalidates or removes reaches no entry of another one, with any capability.
  @Test func `tenants are separate`() async throws {
    let all = MemoryStore<Expiring<Int>>().observable().cached().expiring()
    let (first, second) = (all.prefixed(by: "1/"), all.prefixed(by: "2/"))
    try await second.setValue(2, forKey: "k")
    try await first.setValue(1, forKey: "k", timeToLive: .after(.seconds(60)))
    #expect(try await all.keys(in: .all, limit: .max, order: .ascending) == ["1/k", "2/k"])
    #expect(try await first.peekValue(forKey: "k") == 1)
    #expect(try await first.touch("k", timeToLive: .after(.seconds(90))))
    guard case .after = try await first.remainingTime(forKey: "k") else {
      Issue.record("the remaining time of the first tenant's entry is unlimited or unknown")
      return
    }
    #expect(try await second.remainingTime(forKey: "k") == .never)
    #expect(try await first.timeUntilExpiry(ofAny: ["k"]) != nil)
    #expect(try await second.timeUntilExpiry(ofAny: ["k"]) == nil)
    #expect(try await !first.touch("2/k"))
    try first.invalidate("k")
    let audited = AnyDataStore(all).prefixed(by: "1/")
    #expect(try await audited.storeStatistics().entryCount == 1)
    try await first.removeAll()
    #expect(try await second.value(forKey: "k") == 2)
    #expect(try await first.count() == 0)
  }

  /// Errors, findings and reports name the keys of the tenant, and no key of another one.
  @Test func `keys are those of the tenant`() async throws {
    let all = MemoryStore<[UInt8]>().observable()
    let numbers = all.typed(Int.self, codec: .json()).prefixed(by: "1/")
    let (events, observer) = AsyncStream.makeStream(of: StoreEvent.self)
    let observation = numbers.observe(.all) { observer.yield($0) }
    for key in ["1/damaged", "2/damaged"] as [StoreKey] { try await all.setValue([1, 2], forKey: key) }
    try await numbers.setValue(5, forKey: "sound")
    try await all.removeAll()
    try await all.setValue([1, 2], forKey: "1/damaged")
    var received: [StoreEvent] = []
    for await event in events {
      received.append(event)
      if received.count == 4 { break }
    }
    #expect(
      received == [
        .changed([.key("damaged")]), .changed([.key("sound")]), .changed([.range(.all)]), .changed([.key("damaged")]),
      ])
    withExtendedLifetime(observation) {}
    let error = await expectStoreError(.corrupted) { try await numbers.value(forKey: "damaged") }
    #expect(error?.key == "damaged")
    let audited = AnyDataStore(all.typed(Int.self, codec: .json())).prefixed(by: "1/")
    #expect(try await audited.verify().findings.map(\.key) == ["damaged"])
    let tooLong = StoreKey(bytes: Array(repeating: 1, count: 510))
    await expectStoreError(.invalidKey) { try await numbers.setValue(1, forKey: tooLong) }
  }

  /// A view over a part takes part in a transaction of the part.
  @Test func `a part has transactions`() async throws {
    let all = MemoryStore<[UInt8]>()
    let part = all.prefixed(by: "1/")
    let (names, ages) = (
      part.typed(String.self, prefix: "n/", codec: .json()), part.typed(Int.self, prefix: "a/", codec: .json())
    )
    try await part.transaction { tx in
      try await tx.setValue("Ada", forKey: "1", in: names)
      try await tx.setValue(36, forKey: "1", in: ages)
      return .commit(())
    }
    #expect(try all.keys(in: .all, limit: .max, order: .ascending) == ["1/a/1", "1/n/1"])
  }
}

/// A decorator that changes keys, but not those of the capability that it has without having implemented it.
private struct ForgetfulStore<Base: DataStore>: StoreDecorator {
  let base: Base

  private var tenant: KeyMappingStore<Base> { base.prefixed(by: "m/") }

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await body()
  }

  var information: StoreInformation { tenant.information }

  func value(forKey key: StoreKey) async throws -> Base.Value? { try await tenant.value(forKey: key) }

  func values(forKeys keys: [StoreKey]) async throws -> [Base.Value?] { try await tenant.values(forKeys: keys) }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Base.Value>] {
    try await tenant.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await tenant.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int { try await tenant.count(in: range) }

  func apply(_ changes: ChangeBatch<Base.Value>) async throws { try await tenant.apply(changes) }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await tenant.update(deciding: keys, body)
  }

  func synchronize() async throws { try await tenant.synchronize() }

  func close() async throws { try await tenant.close() }
}

extension ForgetfulStore: ExpirableStore where Base: ExpirableStore {}
extension ForgetfulStore: InvalidatableStore where Base: InvalidatableStore {}
#endif
