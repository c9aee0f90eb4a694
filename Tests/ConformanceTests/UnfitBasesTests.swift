#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderBounded
import LarderCBOR
import LarderCache
import LarderCompressedFile
import LarderCompression
import LarderExpiry
import LarderIndexes
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderMirror
import LarderObservation
import LarderQueue
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Layers over bases that would damage their contents are refused, and those that would only make them old are bounded.
@Suite struct UnfitBasesTests {
  private let byByte = StoreIndex<[UInt8]>("byte") { _, value in [[Int(value.first ?? 0)]] }

  /// A store of bytes with other information.
  private struct OtherStore<Base: DataStore>: PassingStore {
    let base: Base
    let change: @Sendable (inout StoreInformation) -> Void

    var information: StoreInformation {
      var information = base.information
      change(&information)
      return information
    }
  }

  private func expectRefusal<Result>(_ body: () async throws -> Result) async {
    await expectStoreError(.unsupported, body)
  }

  // MARK: Entries that vanish

  private func expectRefusedAsBase<Base: DataStore>(_ base: Base) async where Base.Value == [UInt8] {
    await expectRefusal { try await base.indexed(by: [byByte], codec: .raw) }
    await expectRefusal { try await base.queue(of: Int.self, prefix: "q/", codec: .cbor()) }
    await expectRefusal { try await base.bounded(bytes: 1000) }
    await expectRefusal { try MirroredStore(primary: base, secondary: MemoryStore<[UInt8]>()) }
    await expectRefusal { try MirroredStore(primary: MemoryStore<[UInt8]>(), secondary: base) }
  }

  @Test func `bases that expire are refused`() async {
    await expectRefusedAsBase(MemoryStore<Expiring<[UInt8]>>().expiring(.after(.seconds(60))))
  }

  @Test func `bases that evict are refused`() async throws {
    await expectRefusedAsBase(try await MemoryStore<[UInt8]>().bounded(bytes: 1000))
  }

  /// A decorator that is no capability of the expiring store hides nothing.
  @Test func `decorators between them hide nothing`() async throws {
    let expiring = MemoryStore<Expiring<[UInt8]>>().expiring(.after(.seconds(60)))
    let hidden = OtherStore(base: expiring) { _ in }
    await expectRefusedAsBase(hidden)
    expectStoreError(.unsupported) {
      try hidden.cached(
        in: MemoryStore<[UInt8]>(), codec: .raw, configuration: TieredStoreConfiguration(timeToLive: .seconds(9)))
    }
    await expectRefusal { try await hidden.copy(to: MemoryStore<[UInt8]>()) }
    await expectRefusal { try await hidden.migrateAll() }
    await expectRefusedAsBase(expiring.cached().batched().observable().metered(as: "x"))
    let bounded = try await MemoryStore<[UInt8]>().bounded(bytes: 1000)
    await expectRefusedAsBase(bounded.typed([UInt8].self, prefix: "p/", codec: .raw))
  }

  /// A guest that does not say whether its entries stay.
  @Test func `unknown lifetimes are refused`() async {
    await expectRefusedAsBase(OtherStore(base: MemoryStore<[UInt8]>()) { $0.entryLifetime = nil })
  }

  // MARK: Encryption

  /// Layers and copies that would store encrypted values in plain form.
  @Test func `encrypted values are copied in plain form only by name`() async throws {
    let folder = try TemporaryFolder()
    let secret = try await EncryptedCodecConformance.encrypted(.json(String.self))
    let record = try await JSONFileStore(path: folder.path("record"), codec: secret, durability: .buffered)
    try await record.setValue("PATIENT-SECRET", forKey: "a")
    let disk = try await LMDBStore(path: folder.path("cache"), codec: .raw, durability: .buffered)
    let plain = try await CompressedFileStore<String>(path: folder.path("plain"), durability: .buffered)
    var options = TieredStoreConfiguration(timeToLive: .seconds(60))
    expectStoreError(.unsupported) { try record.cached(in: disk, codec: .json(), configuration: options) }
    expectStoreError(.unsupported) {
      try record.cached().cached(in: disk, codec: .json().compressed(), configuration: options)
    }
    expectStoreError(.unsupported) { try MirroredStore(primary: record, secondary: plain) }
    await expectRefusal { try await record.copy(to: plain) }
    await expectRefusal {
      try await AnyDataStore(record.observable()).copy(to: plain) { _ in
      } converting: {
        $0
      }
    }
    // A guest that claims nothing.
    let guest = OtherStore(base: MemoryStore<String>()) { $0.valuesAtRest = nil }
    await expectRefusal { try await record.copy(to: guest) }
    // In memory, but with copies on the disk.
    let copied = try MemoryStore<String>().cached(in: disk, codec: .json(), configuration: options)
    await expectRefusal { try await record.copy(to: copied) }
    let mirrored = try MirroredStore(primary: MemoryStore<String>(), secondary: plain)
    await expectRefusal { try await record.copy(to: mirrored) }
    #expect(try disk.count(in: .all) + plain.count(in: .all) == 0)

    // Encrypted, or in memory only.
    _ = try record.cached(in: disk, codec: secret, configuration: options)
    let inMemory = try record.cached(in: MemoryStore<[UInt8]>(), codec: .json(), configuration: options)
    await expectRefusal { try await inMemory.copy(to: plain) }
    _ = try record.cached(
      in: disk.typed([UInt8].self, codec: try await bytesOfCache()), codec: .json(), configuration: options)
    try await record.copy(to: MemoryStore<String>())
    // Plain to encrypted.
    try await plain.setValue("x", forKey: "b")
    try await plain.copy(to: record)

    options.allowsPlainCopies = true
    let cached = try record.cached(in: disk, codec: .json(), configuration: options)
    // A value that is encrypted in one of the stores is a secret for other layers.
    #expect(cached.information.valuesAtRest == .encrypted)
    let mirror = try MirroredStore(primary: record, secondary: plain, allowsPlainCopies: true)
    #expect(mirror.information.valuesAtRest == .encrypted)
    #expect(try await record.copy(to: plain, allowsPlainCopies: true).copiedCount == 1)
    try await mirror.close()
    try await disk.close()
  }

  /// A store that accepts small commits only.
  private struct SmallCommits<Base: DataStore>: PassingStore {
    let base: Base

    var information: StoreInformation {
      var information = base.information
      information.maximumChangeCount = 4
      return information
    }

    func apply(_ changes: ChangeBatch<Base.Value>) async throws {
      try information.check(changes)
      try await base.apply(changes)
    }

    func update<Result: Sendable>(
      deciding keys: [StoreKey],
      _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
    ) async throws -> Result {
      try information.check(updateOf: keys)
      return try await base.update(deciding: keys, body)
    }
  }

  @Test func `commits have no more changes than the store accepts`() async throws {
    let source = MemoryStore<Int>()
    try source.apply(ChangeBatch((0..<30).map { .set(StoreKey(integer: $0), $0) }))
    let small = SmallCommits(base: MemoryStore<Int>())
    #expect(try await source.copy(to: small).copiedCount == 30)
    #expect(try await small.migrateAll().examinedCount == 30)
    let batching = SmallCommits(base: MemoryStore<Int>()).batched()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<30 {
        group.addTask { try await batching.setValue(number, forKey: StoreKey(integer: number)) }
      }
      try await group.waitForAll()
    }
    #expect(try await batching.count() == 30)
    await expectStoreError(.invalidArgument) {
      try await small.apply(ChangeBatch((0..<5).map { .set(StoreKey(integer: $0), $0) }))
    }
    await expectStoreError(.invalidArgument) { try await small.update((0..<5).map { StoreKey(integer: $0) }) { _ in } }
    let view = try await SmallCommits(base: MemoryStore<[UInt8]>()).typed(Int.self, prefix: "n/", recording: .json())
    #expect(try await source.copy(to: view).copiedCount == 30)
  }

  private func bytesOfCache() async throws -> some Codec<[UInt8]> {
    try await EncryptedCodecConformance.encrypted(.raw)
  }

  @Test func `a record of a codec needs a store that keeps it`() async throws {
    let expiring = MemoryStore<Expiring<[UInt8]>>().expiring(.after(.seconds(60)))
    await expectRefusal { try await expiring.typed(Int.self, prefix: "n/", recording: .json()) }
  }

  // MARK: Queues

  @Test func `queues are not copied mirrored or rewritten`() async throws {
    let folder = try TemporaryFolder()
    let log = try await QueueStore<[UInt8]>(path: folder.path("queue"), codec: .raw, durability: .buffered)
    try await log.enqueue([1])
    await expectRefusedAsBase(log)
    await expectRefusal { try await log.copy(to: MemoryStore<[UInt8]>()) }
    await expectRefusal { try await log.migrateAll() }
    let stored = try await MemoryStore<[UInt8]>().queue(of: [UInt8].self, prefix: "q/", codec: .raw)
    try await stored.enqueue([1])
    await expectRefusedAsBase(stored)
    await expectRefusal { try await stored.copy(to: MemoryStore<[UInt8]>()) }
    await expectRefusal { try await stored.cached().migrateAll() }
    try await log.close()
  }

  @Test func `a queue refuses other entries under its prefix`() async throws {
    let base = MemoryStore<[UInt8]>()
    try base.apply([.set("jobstats/1", [1])])
    await expectStoreError(.invalidArgument) { try await base.queue(of: Int.self, prefix: "jobs", codec: .cbor()) }
    let queue = try await base.queue(of: Int.self, prefix: "jobs/", codec: .cbor())
    try await queue.enqueue(1)
    // It opens again.
    let again = try await base.queue(of: Int.self, prefix: "jobs/", codec: .cbor())
    #expect(try await again.counts().waiting == 1)
    // Others that another program adds later are left as they are, and end no call.
    let others = (0..<700).map { StoreKey("jobs/t\($0)") }
    try base.apply(ChangeBatch(others.map { .set($0, []) }))
    #expect(try await again.receive(lease: .seconds(60))?.value == 1)
    #expect(try base.values(forKeys: others).allSatisfy { $0 == [] })
  }

  // MARK: Reports

  /// The base reports the commits of one object, and another program writes.
  @Test func `a consumer looks again if not all commits are reported`() async throws {
    let (memory, clock) = (MemoryStore<[UInt8]>(), ManualClock())
    let shared = OtherStore(base: memory) { $0.sharing = .betweenProcesses }
    func open<Base: DataStore>(_ base: Base) async throws -> StoreQueue<Base, Int> where Base.Value == [UInt8] {
      try await StoreQueue(base, prefix: "q/", codec: .cbor(), environment: .manual(clock))
    }
    let (consumer, producer) = (try await open(shared.observable()), try await open(shared))
    #expect(!consumer.base.information.reportsAllCommits)
    async let delivery = consumer.nextDelivery(lease: .seconds(60)).get()
    try await clock.waitForSleepers(1)
    try await producer.enqueue(7)
    clock.advance(by: .seconds(1))
    #expect(try await delivery.value == 7)
  }

  @Test func `a cache over a shared base without reports is at most a minute old`() async throws {
    let (memory, clock) = (MemoryStore<Int>(), ManualClock())
    try memory.apply([.set("a", 1)])
    let shared = OtherStore(base: memory) { $0.sharing = .betweenHosts }
    let (cached, exclusive) = (shared.cached(clock: clock), memory.cached(clock: clock))
    var options = CachedStoreConfiguration<Int>()
    options.timeToLive = .unlimited
    let unlimited = shared.cached(options, clock: clock)
    for store in [AnyDataStore(cached), AnyDataStore(exclusive), AnyDataStore(unlimited)] {
      #expect(try await store.value(forKey: "a") == 1)
    }
    try memory.apply([.set("a", 2)])
    clock.advance(by: .seconds(59))
    #expect(try await cached.value(forKey: "a") == 1)
    clock.advance(by: .seconds(2))
    #expect(try await cached.value(forKey: "a") == 2)
    #expect(try await exclusive.value(forKey: "a") == 1)
    #expect(try await unlimited.value(forKey: "a") == 1)
  }

  @Test(
    arguments: [
      (.exclusive, nil, false), (.exclusive, .ofObject, true), (.betweenProcesses, .ofObject, false),
      (.betweenProcesses, .ofHost, true), (.betweenHosts, .ofHost, false), (.betweenHosts, .ofAllHosts, true),
    ] as [(StoreInformation.Sharing, StoreInformation.ReportedCommits?, Bool)])
  func `all commits are reported`(
    _ sharing: StoreInformation.Sharing, _ reported: StoreInformation.ReportedCommits?, _ expected: Bool
  ) {
    let information = StoreInformation(
      name: "x", durability: .synced, sharing: sharing, reportedCommits: reported)
    #expect(information.reportsAllCommits == expected)
  }
}
#endif
