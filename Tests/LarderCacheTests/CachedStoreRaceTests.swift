import Larder
import LarderTesting
import Testing
import TestSupport

@testable import LarderCache

/// The races that caches in front of stores are known to lose.
@Suite(.timeLimit(.minutes(60))) struct CachedStoreRaceTests {
  let memory = MemoryStore<Int>()
  let base: FaultyStore<MemoryStore<Int>>
  let store: CachedStore<FaultyStore<MemoryStore<Int>>>

  init() {
    base = memory.faulty()
    store = base.cached()
  }

  /// Starts a read that waits in the base before or after the base's read.
  func beginRead(
    _ moment: StoreFault.Moment, policy: LoadPolicy = .cacheElseLoad
  ) async throws -> Task<Int?, any Error> {
    let before = base.suspendedCount()
    base.schedule(.suspension(moment), on: .value)
    let read = Task { [store] in try await store.value(forKey: "a", policy: policy) }
    try await base.waitForSuspended(before + 1)
    return read
  }

  /// Starts a write that waits in the base before or after the base's write.
  func beginWrite(_ value: Int, _ moment: StoreFault.Moment) async throws -> Task<Void, any Error> {
    let before = base.suspendedCount(of: .apply)
    base.schedule(.suspension(moment), on: .apply)
    let write = Task { [store] in try await store.setValue(value, forKey: "a") }
    try await base.waitForSuspended(before + 1, of: .apply)
    return write
  }

  /// Waits until this many readers have joined loads.
  private func waitForJoiners(_ count: Int) async {
    while store.statistics().sharedLoads < count { await Task.yield() }
  }

  /// Reads during a suspended load of the same key, and expects not to join it.
  private func readApart() async throws -> Int? {
    let isDone = Flag()
    let read = Task { [store] in
      defer { isDone.set() }
      return try await store.value(forKey: "a")
    }
    while !isDone.isSet && store.statistics().sharedLoads == 0 { await Task.yield() }
    #expect(store.statistics().sharedLoads == 0)
    // Otherwise the test would wait forever.
    if !isDone.isSet { base.resume() }
    return try await read.value
  }

  private var cached: Int? {
    get async throws { try await store.value(forKey: "a", policy: .cacheOnly) }
  }

  // MARK: Fills and writes

  @Test func `a load overtaken by a write is not cached`() async throws {
    try memory.apply([.set("a", 1)])
    let read = try await beginRead(.after)
    try await store.setValue(2, forKey: "a")
    try await store.removeValue(forKey: "a")
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func `a load does not replace a later write`() async throws {
    try memory.apply([.set("a", 1)])
    let read = try await beginRead(.after)
    try await store.setValue(2, forKey: "a")
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await cached == 2)
  }

  @Test func `a read of several keys overtaken by a write is not cached`() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    base.schedule(.suspension(.after), on: .values)
    let read = Task { [store] in try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended()
    try await store.setValue(2, forKey: "a")
    try await store.removeValue(forKey: "a")
    base.resume()
    #expect(try await read.value == [1, 1])
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, 1])
  }

  @Test func `values read during a write are not cached`() async throws {
    try memory.apply([.set("a", 1)])
    let write = try await beginWrite(2, .before)
    // It has read the old value, and ends after the new one is in the base.
    let read = try await beginRead(.after)
    base.resume(.apply)
    try await write.value
    base.resume(.value)
    #expect(try await read.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func `reads during a write go to the base`() async throws {
    try memory.apply([.set("a", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    let write = try await beginWrite(2, .after)
    // The base has the value, so every reader sees it, though the writer has not returned.
    for _ in 1...2 { #expect(try await store.value(forKey: "a") == 2) }
    #expect(try await store.values(forKeys: ["a", "b"]) == [2, nil])
    #expect(try await cached == nil)
    base.resume()
    try await write.value
    #expect(try await cached == 2)
  }

  @Test func `concurrent writers do not cache their values`() async throws {
    let first = try await beginWrite(1, .before)
    let second = try await beginWrite(2, .after)
    base.resume()
    try await first.value
    try await second.value
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == memory.value(forKey: "a"))
  }

  @Test func `a writer overtaken by a range removal does not cache its value`() async throws {
    let write = try await beginWrite(1, .after)
    try await store.removeAll(in: .prefix("a"))
    base.resume()
    try await write.value
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func `a writer during a range removal does not cache its value`() async throws {
    base.schedule(.suspension(.before), on: .apply)
    let removal = Task { [store] in try await store.removeAll() }
    try await base.waitForSuspended()
    try await store.setValue(1, forKey: "a")
    #expect(try await cached == nil)
    base.resume()
    try await removal.value
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func `reads during a range removal go to the base and cache nothing`() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, 1])
    base.schedule(.suspension(.before), on: .apply)
    let removal = Task { [store] in try await store.removeAll(in: .prefix("a")) }
    try await base.waitForSuspended()
    #expect(try await store.value(forKey: "a") == 1)
    base.resume()
    try await removal.value
    #expect(try await store.value(forKey: "a") == nil)
    #expect(try await store.value(forKey: "b", policy: .cacheOnly) == 1)
  }

  @Test func `a load overtaken by an update does not undo it`() async throws {
    try memory.apply([.set("a", 1)])
    let read = try await beginRead(.after)
    #expect(try await store.update("a") { slot in slot.map { slot = $0 + 1 } } != nil)
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await cached == 2)
  }

  // MARK: Failed writes

  @Test(arguments: [StoreFault.Moment.before, .after]) func `a failed write leaves no uncommitted value`(
    _ moment: StoreFault.Moment
  ) async throws {
    try await store.setValue(1, forKey: "a")
    base.schedule(.error(.ioFailed, moment), on: .apply)
    await expectStoreError(.ioFailed) { try await store.setValue(2, forKey: "a") }
    #expect(try await cached == nil)
    let value = try memory.value(forKey: "a")
    #expect(try await store.value(forKey: "a") == value)
    // The write is over, so the value read is cached.
    #expect(try await cached == value)
  }

  @Test(arguments: [StoreFault.Moment.before, .after]) func `a failed removal leaves no stale entry`(
    _ moment: StoreFault.Moment
  ) async throws {
    try await store.apply([.set("a", 1), .set("b", 1)])
    base.schedule(.error(.ioFailed, moment), on: .apply)
    await expectStoreError(.ioFailed) { try await store.removeAll() }
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, nil])
    #expect(try await store.value(forKey: "a") == memory.value(forKey: "a"))
  }

  @Test func `an abandoned update leaves no changes of its body`() async throws {
    struct Abandonment: Error {}
    try await store.setValue(1, forKey: "a")
    await #expect(throws: Abandonment.self) {
      try await store.update("a") { slot in
        slot = 2
        throw Abandonment()
      }
    }
    #expect(try await store.value(forKey: "a") == 1)
  }

  @Test func `an update with a failed commit leaves no uncommitted value`() async throws {
    try await store.setValue(1, forKey: "a")
    base.schedule(.error(.timedOut, .after), on: .update)
    await expectStoreError(.timedOut) { try await store.update("a") { $0 = 2 } }
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == 2)
  }

  // MARK: Snapshots

  @Test func `a read of several keys is one snapshot`() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    // One key comes from the cache, the other from the base, and both are written in between.
    base.schedule(.suspension(.before), on: .value)
    let read = Task { [store] in try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended()
    try await store.apply([.set("a", 2), .set("b", 2)])
    base.resume()
    #expect(try await read.value == [2, 2])
  }

  // MARK: Shared loads

  @Test func `readers after a write do not join an earlier load`() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    base.schedule(.error(.timedOut, .after), on: .apply)
    await expectStoreError(.timedOut) { try await store.setValue(2, forKey: "a") }
    #expect(try await readApart() == 2)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == 2)
  }

  @Test func `readers after a range removal do not join an earlier load`() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try await store.removeAll()
    #expect(try await readApart() == nil)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == nil)
  }

  @Test func `readers after an invalidation do not join an earlier load`() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try memory.apply([.set("a", 2)])
    try store.invalidate("a")
    #expect(try await readApart() == 2)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == 2)
  }

  @Test func `a load from before a full invalidation is not cached`() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try memory.apply([.set("a", 2)])
    try store.invalidateAll()
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func `a load from before a reload does not replace its entry`() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try memory.apply([.set("a", 2)])
    #expect(try await store.value(forKey: "a", policy: .reload) == 2)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == 2)
  }

  @Test func `a writer does not replace a later reload`() async throws {
    let write = try await beginWrite(1, .after)
    try memory.apply([.set("a", 2)])
    #expect(try await store.value(forKey: "a", policy: .reload) == 2)
    base.resume()
    try await write.value
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func `a refresh overtaken by a write is not cached`() async throws {
    let clock = ManualClock()
    var configuration = CachedStoreConfiguration<Int>()
    configuration.refreshAfter = .seconds(1)
    let store = base.cached(configuration, clock: clock)
    try await store.setValue(1, forKey: "a")
    clock.advance(by: .seconds(1))
    base.schedule(.suspension(.after), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    try await base.waitForSuspended()
    try await store.setValue(2, forKey: "a")
    base.resume()
    while !store.cache.isIdle { await Task.yield() }
    #expect(try await store.value(forKey: "a") == 2)
    #expect(store.statistics().loads == 1)
  }

  // MARK: Waiting

  @Test func `ten thousand misses of one key share one load`() async throws {
    try memory.apply([.set("a", 1)])
    let before = base.operationCount
    base.schedule(.yields(upTo: 100), probability: 1)
    try await withThrowingTaskGroup(of: Int?.self) { group in
      for _ in 0..<10_000 { group.addTask { [store] in try await store.value(forKey: "a") } }
      for try await value in group { #expect(value == 1) }
    }
    #expect(base.operationCount == before + 1)
    #expect(store.statistics().loads == 1)
    #expect(store.statistics().hits + store.statistics().misses == 10_000)
  }

  @Test func `a reader that starts a load looks in the cache again`() async throws {
    try memory.apply([.set("a", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    // A reader may have looked in the cache before that load ended.
    #expect(try await store.missedValue(forKey: "a") == 1)
    #expect(store.statistics().loads == 1)
    #expect(store.cache.isIdle)
  }

  @Test func `cancelled readers leave immediately and the load continues`() async throws {
    try memory.apply([.set("a", 1)])
    let leader = try await beginRead(.before)
    let joiners = (0..<3).map { _ in Task { [store] in try await store.value(forKey: "a") } }
    await waitForJoiners(3)
    for task in [leader] + joiners.dropLast() { task.cancel() }
    for task in [leader] + joiners.dropLast() {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    // A reader that leaves does not cancel the load of later readers.
    let late = Task { [store] in try await store.value(forKey: "a") }
    await waitForJoiners(4)
    base.resume()
    #expect(try await joiners[2].value == 1)
    #expect(try await late.value == 1)
    #expect(base.operationCount == 1)
  }

  @Test func `a load is cached even if all readers have left`() async throws {
    try memory.apply([.set("a", 1)])
    let leader = try await beginRead(.before)
    leader.cancel()
    await #expect(throws: CancellationError.self) { try await leader.value }
    base.resume()
    while try await cached == nil { await Task.yield() }
    #expect(base.operationCount == 1)
  }

  @Test func `an error reaches all waiters and is not cached`() async throws {
    try memory.apply([.set("a", 1)])
    base.schedule(.suspension(.after), on: .value)
    base.schedule(.error(.ioFailed, .after), on: .value)
    let tasks = (0..<5).map { _ in Task { [store] in try await store.value(forKey: "a") } }
    try await base.waitForSuspended()
    await waitForJoiners(4)
    base.resume()
    for task in tasks { await expectStoreError(.ioFailed) { try await task.value } }
    #expect(try await store.value(forKey: "a") == 1)
    #expect(store.statistics().loads == 2)
    #expect(store.statistics().loadFailures == 1)
  }

  @Test func `an error is not cached as a missing key`() async throws {
    try memory.apply([.set("a", 1)])
    var configuration = CachedStoreConfiguration<Int>()
    configuration.negativeTimeToLive = .seconds(60)
    let store = base.cached(configuration)
    base.schedule(.error(.ioFailed), on: .value)
    await expectStoreError(.ioFailed) { try await store.value(forKey: "a") }
    #expect(try await store.value(forKey: "a") == 1)
  }
}
