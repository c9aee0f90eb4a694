import Larder
import LarderCache
import LarderTesting
import TestSupport
import Testing

/// Capabilities of other stores and decorators, through a cache.
@Suite struct CachedStoreCapabilitiesTests {
  let memory = MemoryStore<Int>()
  let probe: ProbedStore<Int>

  init() {
    probe = ProbedStore(base: memory)
  }

  @Test func `the capabilities of the base stay reachable`() async throws {
    let store = probe.faulty().cached()
    try await store.setValue(1, forKey: "a")
    #expect(try await store.touch("a", timeToLive: .after(.seconds(5))))
    #expect(try await store.remainingTime(forKey: "a") == .after(.seconds(5)))
    #expect(try await store.purgeExpired() == 1)
    try await store.flush()
    #expect(probe.capabilities == [.touch, .remainingTime, .purgeExpired, .flush])
    #expect(try await !store.touch("a"))
    await expectStoreError(.invalidKey) { try await store.touch("") }
  }

  @Test func `touching an entry removes it from the cache`() async throws {
    let store = probe.cached()
    try await store.apply([.set("a", 1), .set("b", 1)])
    try memory.apply([.remove("a")])
    #expect(try await !store.touch("a", timeToLive: nil))
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, 1])
  }

  @Test func `purging removes entries that may have expired`() async throws {
    let store = probe.cached()
    try await store.setValue(1, forKey: "a")
    try await store.touch("a", timeToLive: .after(.seconds(5)))
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.purgeExpired(limit: 1) == 1)
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func `an expired entry is removed from the cache`() async throws {
    let store = probe.cached()
    try await store.setValue(1, forKey: "a")
    #expect(try await store.remainingTime(forKey: "a") == nil)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
  }

  @Test func `a touch in progress makes the key busy`() async throws {
    let base = probe.faulty()
    let store = base.cached()
    try await store.setValue(1, forKey: "a")
    base.schedule(.suspension(.before), on: .touch)
    let touch = Task { try await store.touch("a", timeToLive: nil) }
    try await base.waitForSuspended()
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    base.resume()
    #expect(try await touch.value)
  }

  @Test func `entries can be invalidated through a stack`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let cache = bytes.cached()
    let store = cache.faulty().typed(Int.self, prefix: "n/", codec: .json())
    try await store.setValue(1, forKey: "a")
    try await store.setValue(2, forKey: "b")
    try store.invalidate("a")
    #expect(try await cache.values(forKeys: ["n/a", "n/b"], policy: .cacheOnly).map { $0 == nil } == [true, false])
    #expect(expectStoreError(.invalidKey) { try store.invalidate("") }?.store == "memory")
    try store.invalidateAll()
    #expect(try await cache.value(forKey: "n/b", policy: .cacheOnly) == nil)
    try await store.close()
    #expect(expectStoreError(.closed) { try store.invalidateAll() }?.operation == .invalidateAll)
    expectStoreError(.closed) { try store.invalidate("a") }
  }

  @Test func `the capabilities of a store of bytes reach through a cache and a view`() async throws {
    let probe = ProbedStore(base: MemoryStore<[UInt8]>())
    let store = probe.cached().typed(Int.self, prefix: "n/", codec: .json())
    try await store.setValue(1, forKey: "a")
    #expect(try await store.touch("a", timeToLive: .after(.seconds(5))))
    #expect(try await probe.remainingTime(forKey: "n/a") == .after(.seconds(5)))
    #expect(try await store.remainingTime(forKey: "a") == .after(.seconds(5)))
    #expect(try await store.purgeExpired(limit: 1) == 1)
    #expect(try await store.value(forKey: "a") == nil)
    try await store.flush()
    #expect(probe.capabilities.last == .flush)
    #expect(await expectStoreError(.invalidKey) { try await store.touch("") }?.store == "memory")
    await expectStoreError(.invalidKey) { try await store.remainingTime(forKey: "") }
  }
}
