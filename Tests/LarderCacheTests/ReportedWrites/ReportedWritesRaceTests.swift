#if LMDB
import Larder
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// Writes beside a cache during the cache's own reads and writes.
@Suite(.timeLimit(.minutes(60))) struct ReportedWritesRaceTests {
  /// The store that is also written without the cache.
  private let shared = MemoryStore<Int>().observable()
  private let base: FaultyStore<ObservingStore<MemoryStore<Int>>>
  private let store: CachedStore<FaultyStore<ObservingStore<MemoryStore<Int>>>>

  init() {
    base = shared.faulty()
    store = base.cached()
  }

  private func beginRead(_ moment: StoreFault.Moment) async throws -> Task<Int?, any Error> {
    let before = base.suspendedCount()
    base.schedule(.suspension(moment), on: .value)
    let read = Task { [store] in try await store.value(forKey: "a") }
    try await base.waitForSuspended(before + 1)
    return read
  }

  private func beginWrite(_ value: Int, _ moment: StoreFault.Moment) async throws -> Task<Void, any Error> {
    base.schedule(.suspension(moment), on: .apply)
    let write = Task { [store] in try await store.setValue(value, forKey: "a") }
    try await base.waitForSuspended(1, of: .apply)
    return write
  }

  private var cached: Int? {
    get async throws { try await store.value(forKey: "a", policy: .cacheOnly) }
  }

  /// The write of the cache has been made and reported, and has not returned.
  @Test(arguments: [false, true]) func `a value replaced during its write is not cached`(_ isRange: Bool) async throws {
    let write = try await beginWrite(1, .after)
    try await shared.apply([isRange ? .removeAll(.all) : .set("a", 2)])
    base.resume()
    try await write.value
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == (isRange ? nil : 2))
    #expect(store.cache.isIdle)
  }

  @Test func `a value written after another one is read from the base`() async throws {
    let write = try await beginWrite(1, .before)
    try await shared.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    base.resume()
    try await write.value
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await cached == 1)
  }

  @Test func `a failed write leaves the value written beside it`() async throws {
    base.schedule(.suspension(.after), on: .apply)
    base.schedule(.error(.ioFailed, .after), on: .apply)
    let write = Task { [store] in try await store.setValue(1, forKey: "a") }
    try await base.waitForSuspended()
    try await shared.setValue(2, forKey: "a")
    base.resume()
    await expectStoreError(.ioFailed) { try await write.value }
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func `a load overtaken by a write beside is neither cached nor joined`() async throws {
    try await shared.setValue(1, forKey: "a")
    let read = try await beginRead(.after)
    try await shared.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
    #expect(store.cache.isIdle)
  }

  @Test func `a read of several keys is one snapshot`() async throws {
    try await shared.apply([.set("a", 1), .set("b", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    base.schedule(.suspension(.after), on: .value)
    let read = Task { [store] in try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended()
    try await shared.apply([.set("a", 2), .set("b", 2)])
    base.resume()
    #expect(try await read.value == [2, 2])
  }

  @Test func `a refresh overtaken by a write beside is not cached`() async throws {
    let clock = ManualClock()
    var configuration = CachedStoreConfiguration<Int>()
    configuration.refreshAfter = .seconds(10)
    let store = base.cached(configuration, clock: clock)
    try await store.setValue(1, forKey: "a")
    clock.advance(by: .seconds(10))
    base.schedule(.suspension(.after), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    try await base.waitForSuspended()
    try await shared.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    base.resume()
    while !store.cache.isIdle { await Task.yield() }
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 2)
  }
}
#endif
