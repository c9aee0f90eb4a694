#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderMetrics
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// The advantages and faults of each order of decorators, as `Modules/Larder/Larder.docc/Composing.md` describes them.
@Suite struct StackOrderTests {
  private let clock = ManualClock()

  // MARK: Expiry and the cache

  @Test func `a cache above expiry returns expired entries`() async throws {
    let clock = clock
    let wrong = MemoryStore<Expiring<String>>().expiring(.after(.seconds(1))) { clock.date }.cached()
    try await wrong.setValue("a", forKey: "k")
    clock.advance(by: .seconds(1000))
    #expect(try await wrong["k"] == "a")
    #expect(try await wrong.base["k"] == nil)
  }

  @Test func `a cache below expiry returns no expired entries`() async throws {
    let clock = clock
    let backend = MemoryStore<Expiring<String>>().metered(as: "backend", logger: nil)
    let right = backend.cached().expiring(.after(.seconds(1))) { clock.date }
    try await right.setValue("a", forKey: "k")
    #expect(try await right["k"] == "a")
    clock.advance(by: .seconds(1))
    #expect(try await right["k"] == nil)
    #expect(backend.report()["value"] == nil)
  }

  @Test func `hits of a cache above expiry move no deadline`() async throws {
    let clock = clock
    let wrong = MemoryStore<Expiring<String>>().expiring(.sliding(.seconds(10))) { clock.date }.cached()
    let right = MemoryStore<Expiring<String>>().cached().expiring(.sliding(.seconds(10))) { clock.date }
    try await wrong.setValue("a", forKey: "k")
    try await right.setValue("a", forKey: "k")
    clock.advance(by: .seconds(9))
    _ = try await wrong["k"]
    _ = try await right["k"]
    #expect(try await wrong.remainingTime(forKey: "k") == .after(.seconds(1)))
    #expect(try await right.remainingTime(forKey: "k") == .after(.seconds(10)))
  }

  // MARK: Expiry and write-behind

  @Test func `below write behind a time to live begins with the flush`() async throws {
    let clock = clock
    let wrong = MemoryStore<Expiring<String>>().expiring(.after(.seconds(10))) { clock.date }
      .writeBehind(maximumAge: .seconds(3600), clock: clock)
    let right = MemoryStore<Expiring<String>>().writeBehind(maximumAge: .seconds(3600), clock: clock)
      .expiring(.after(.seconds(10))) { clock.date }
    try await wrong.setValue("a", forKey: "k")
    try await right.setValue("a", forKey: "k")
    clock.advance(by: .seconds(100))
    #expect(try await wrong["k"] == "a")
    #expect(try await right["k"] == nil)
    try await wrong.flush()
    #expect(try await wrong.remainingTime(forKey: "k") == .after(.seconds(10)))
    try await wrong.close()
    try await right.close()
  }

  @Test func `moving a deadline first writes pending changes`() async throws {
    let clock = clock
    let later = MemoryStore<Expiring<String>>().writeBehind(maximumAge: .seconds(3600), clock: clock)
    let store = later.expiring(.sliding(.seconds(10))) { clock.date }
    try await store.setValue("a", forKey: "k")
    _ = try await store["k"]
    #expect(later.statistics().pendingChanges == 1)
    clock.advance(by: .seconds(5))
    _ = try await store["k"]
    while store.statistics().pendingRenewalCount > 0 { await Task.yield() }
    #expect(store.statistics().writtenRenewalCount == 1)
    #expect(later.statistics().pendingChanges == 0)
    try await store.close()
  }

  // MARK: The cache and write-behind

  @Test func `a cache above write behind keeps returning abandoned writes`() async throws {
    let base = MemoryStore<String>().faulty()
    base.schedule(.error(.ioFailed, outcome: .unknown), on: .apply)
    let wrong = base.writeBehind().cached()
    try await wrong.setValue("a", forKey: "k")
    await expectStoreError(.ioFailed) { try await wrong.flush() }
    #expect(try await wrong["k"] == "a")
    #expect(try await wrong.base["k"] == nil)
  }

  @Test func `a cache below write behind sees only flushed writes`() async throws {
    let base = MemoryStore<String>().faulty()
    base.schedule(.error(.ioFailed, outcome: .unknown), on: .apply)
    let right = base.cached().writeBehind()
    try await right.setValue("a", forKey: "k")
    await expectStoreError(.ioFailed) { try await right.flush() }
    #expect(try await right["k"] == nil)
    #expect(right.takeFailures().count == 1)
    try await right.setValue("b", forKey: "k")
    try await right.flush()
    #expect(try await right.base.value(forKey: "k", policy: .cacheOnly) == "b")
  }

  // MARK: Batching

  /// Reads the second of two keys while the commit of the first one delays its write.
  ///
  /// - Returns: The number of reads that have reached the store.
  private func readsOfAKeyWhoseWriteWaits<Stack: DataStore<String>>(
    _ decorate: (MeteredStore<FaultyStore<MemoryStore<String>>>) -> (stack: Stack, waitingCount: () -> Int)
  ) async throws -> Int {
    let faulty = MemoryStore<String>().faulty()
    let backend = faulty.metered(as: "backend", logger: nil)
    let (stack, waitingCount) = decorate(backend)
    try await stack.setValue("old", forKey: "b")
    faulty.schedule(.suspension(), on: .apply)
    async let first: Void = stack.setValue("new", forKey: "a")
    try await faulty.waitForSuspended()
    async let second: Void = stack.setValue("new", forKey: "b")
    await yieldUntil { waitingCount() == 1 }
    #expect(try await stack["b"] == "old")
    #expect(try await stack["b"] == "old")
    faulty.resume()
    try await first
    try await second
    #expect(try await stack["b"] == "new")
    return backend.report()["value"]?.count ?? 0
  }

  @Test func `a cache does not keep keys whose writes wait below it`() async throws {
    let missCount = try await readsOfAKeyWhoseWriteWaits { backend in
      let batched = backend.batched()
      return (batched.cached(), { batched.waitingCount })
    }
    #expect(missCount == 2)
    let otherCount = try await readsOfAKeyWhoseWriteWaits { backend in
      let batched = backend.cached().batched()
      return (batched, { batched.waitingCount })
    }
    #expect(otherCount == 0)
  }

  @Test func `batching below write behind has no effect`() async throws {
    let backend = MemoryStore<Int>().metered(as: "backend", logger: nil)
    let store = backend.batched().writeBehind(maximumAge: .seconds(3600), clock: clock)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<100 { group.addTask { try await store.setValue(number, forKey: StoreKey(integer: number)) } }
      try await group.waitForAll()
    }
    try await store.close()
    #expect(backend.report()["apply"]?.count == 1)
  }

  // MARK: Metrics

  @Test func `meters count the calls that reach their layer`() async throws {
    let clock = clock
    let backend = MemoryStore<Expiring<String>>().metered(as: "backend", logger: nil)
    let store = backend.cached().expiring(.after(.seconds(10))) { clock.date }.metered(as: "store", logger: nil)
    try await store.setValue("a", forKey: "k")
    for _ in 0..<100 { #expect(try await store["k"] == "a") }
    #expect(store.report()["value"]?.count == 100)
    #expect(backend.report()["value"] == nil)
    try await store.base.setValue("b", forKey: "l", timeToLive: .never)
    #expect(store.report()["apply"]?.count == 1)
    #expect(backend.report()["apply"]?.count == 2)
  }

  // MARK: Views, erasure, two caches

  /// A codec that counts its calls to decode.
  private final class CountingCodec: Codec {
    let count = Atomic<Int>(0)
    var name: String { "json" }
    var format: CodecFormat { .json }

    func encode(_ value: String, into bytes: inout [UInt8], context: ValueContext) throws {
      try JSONCodec<String>().encode(value, into: &bytes)
    }

    func decode(_ bytes: RawSpan, context: ValueContext) throws -> String {
      count.add(1, ordering: .relaxed)
      return try JSONCodec<String>().decode(bytes)
    }
  }

  @Test func `a cache below a view decodes on every hit`() async throws {
    let (wrong, right) = (CountingCodec(), CountingCodec())
    let above = MemoryStore<[UInt8]>().cached().typed(String.self, codec: wrong)
    let below = MemoryStore<[UInt8]>().typed(String.self, codec: right).cached()
    try await above.setValue("a", forKey: "k")
    try await below.setValue("a", forKey: "k")
    for _ in 0..<10 {
      #expect(try await above["k"] == "a")
      #expect(try await below["k"] == "a")
    }
    #expect(wrong.count.load(ordering: .relaxed) == 10)
    #expect(right.count.load(ordering: .relaxed) == 0)
  }

  @Test func `type erasure hides capabilities`() {
    let store = MemoryStore<Expiring<String>>().cached().writeBehind().expiring().metered(logger: nil)
    for (value, isAble) in [(store as Any, true), (AnyDataStore(store) as Any, false)] {
      #expect((value is any ExpirableStore) == isAble)
      #expect((value is any InvalidatableStore) == isAble)
      #expect((value is any FlushableStore) == isAble)
    }
  }

  @Test func `a checksum outside of the deadline covers it`() throws {
    let entry = Expiring("a", deadline: ExpiryDeadline(clock.date))
    func isDamageFound(by codec: some Codec<Expiring<String>>) throws -> Bool {
      var bytes: [UInt8] = []
      try codec.encode(entry, into: &bytes)
      #expect(try codec.decode(bytes.span.bytes) == entry)
      // The last bit of the deadline, which is the 8 bytes after the first one.
      bytes[8] ^= 1
      do {
        return try codec.decode(bytes.span.bytes) == entry
      } catch {
        return true
      }
    }
    #expect(try isDamageFound(by: .cbor(String.self).expiring().checksummed()))
    #expect(try !isDamageFound(by: .cbor(String.self).checksummed().expiring()))
  }

  @Test func `two caches do not see each others writes`() async throws {
    let base = MemoryStore<String>()
    let (one, other) = (base.cached(), base.cached())
    try await one.setValue("a", forKey: "k")
    try await other.setValue("b", forKey: "k")
    #expect(try await one["k"] == "a")
    try one.invalidate("k")
    #expect(try await one["k"] == "b")
  }
}
#endif
