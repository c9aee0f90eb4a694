import Larder
import LarderCache
import LarderTesting
import Testing
import TestSupport

@Suite(.timeLimit(.minutes(60))) struct CachedStoreTests {
  let memory = MemoryStore<Int>()
  let base: FaultyStore<MemoryStore<Int>>
  let clock = ManualClock()

  init() {
    base = memory.faulty()
  }

  private func configuration(_ change: (inout CachedStoreConfiguration<Int>) -> Void) -> CachedStoreConfiguration<Int> {
    var configuration = CachedStoreConfiguration<Int>()
    change(&configuration)
    return configuration
  }

  // MARK: Reading and writing

  @Test func `reads come from the base once and then from memory`() async throws {
    try memory.apply([.set("a", 1)])
    let store = base.cached()
    for _ in 1...3 { #expect(try await store.value(forKey: "a") == 1) }
    #expect(base.operationCount == 1)
    #expect(store.statistics().hits == 2)
    #expect(store.statistics().misses == 1)
    #expect(store.statistics().loads == 1)
    #expect(store.statistics().hitRatio > 0.66)
  }

  @Test func `written values are read from memory`() async throws {
    let store = base.cached()
    try await store.setValue(1, forKey: "a")
    try await store.apply([.set("b", 1), .removeAll(.all), .set("c", 1), .set("c", 3), .set("d", 4), .remove("d")])
    #expect(try await store.update(["e", "f"]) { $0.assign([5, 6]) } == ())
    #expect(base.operationCount == 3)
    let keys: [StoreKey] = ["a", "b", "c", "d", "e", "f"]
    #expect(try await store.values(forKeys: keys, policy: .cacheOnly) == [nil, nil, 3, nil, 5, 6])
    #expect(try await store.values(forKeys: keys) == memory.values(forKeys: keys))
  }

  @Test func `a discarded update leaves the cache as it was`() async throws {
    try memory.apply([.set("a", 1)])
    let store = base.cached()
    #expect(try await store.value(forKey: "a") == 1)
    try await store.update(deciding: ["a", "b"]) { slots in
      slots.assign([7, 8])
      return .discard(())
    }
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [1, nil])
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, nil])
  }

  @Test func `only the last run of an update body counts`() async throws {
    let store = RepeatingStore(base: memory).cached()
    let runs = Locked(0)
    try await store.update("a") { slot in
      slot = runs.withLock { runs in
        runs += 1
        return runs
      }
    }
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 2)
    #expect(try memory.value(forKey: "a") == 2)
  }

  @Test func `a read of several keys loads only the missing ones`() async throws {
    try memory.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    let probe = ProbedStore(base: memory)
    let store = probe.cached()
    #expect(try await store.value(forKey: "b") == 2)
    #expect(try await store.values(forKeys: ["c", "b", "x", "c", "a"]) == [3, 2, nil, 3, 1])
    #expect(probe.requests == [["b"], ["c", "x", "a"]])
    #expect(try await store.values(forKeys: ["a", "b", "c"]) == [1, 2, 3])
    #expect(try await store.values(forKeys: ["a"]) == [1])
    #expect(try await store.values(forKeys: []) == [])
    #expect(probe.requests.count == 2)
    #expect(store.statistics().loads == 2)
    #expect(store.statistics().hits == 5)
    #expect(store.statistics().misses == 5)
  }

  @Test func `scans pass through and cache nothing`() async throws {
    try memory.apply([.set("a", 1), .set("b", 2)])
    let store = base.cached()
    #expect(try await store.entries(in: .all, limit: 1, order: .descending).map(\.value) == [2])
    #expect(try await store.keys(in: .all, limit: .max) == ["a", "b"])
    #expect(try await store.count() == 2)
    #expect(try await store.value(forKey: "b", policy: .cacheOnly) == nil)
  }

  // MARK: Policies

  @Test func `cache only reads never reach the base`() async throws {
    try memory.apply([.set("a", 1), .set("b", 2)])
    let store = base.cached(configuration { $0.refreshAfter = .seconds(1) }, clock: clock)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    #expect(try await store.value(forKey: "b") == 2)
    clock.advance(by: .seconds(2))
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, 2])
    await expectStoreError(.invalidKey) { try await store.value(forKey: "", policy: .cacheOnly) }
    await expectStoreError(.invalidKey) { try await store.values(forKeys: ["b", ""], policy: .cacheOnly) }
    #expect(base.operationCount == 1)
  }

  @Test func `reloading skips the cache and refreshes it`() async throws {
    let store = base.cached()
    try await store.apply([.set("a", 1), .set("b", 1), .set("c", 1)])
    try memory.apply([.set("a", 2), .set("b", 2), .remove("c")])
    #expect(try await store.value(forKey: "a", policy: .reload) == 2)
    #expect(try await store.value(forKey: "a") == 2)
    #expect(try await store.values(forKeys: ["b", "c"], policy: .reload) == [2, nil])
    #expect(try await store.values(forKeys: ["b", "c"], policy: .cacheOnly) == [2, nil])
    #expect(store.statistics().misses == 4)
  }

  @Test func `a failed reload leaves the entry`() async throws {
    let store = base.cached()
    try await store.setValue(1, forKey: "a")
    base.schedule(.error(.ioFailed), on: .value)
    await expectStoreError(.ioFailed) { try await store.value(forKey: "a", policy: .reload) }
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 1)
  }

  @Test func `an entry in use is refreshed before it Expires`() async throws {
    let configuration = configuration {
      $0.timeToLive = .afterWrite(.seconds(10))
      $0.refreshAfter = .seconds(8)
    }
    let store = base.cached(configuration, clock: clock)
    try await store.setValue(1, forKey: "a")
    try memory.apply([.set("a", 2)])
    clock.advance(by: .seconds(8))
    #expect(try await store.value(forKey: "a") == 1)
    while try await store.value(forKey: "a", policy: .cacheOnly) != 2 { await Task.yield() }
    clock.advance(by: .seconds(7))
    #expect(try await store.value(forKey: "a") == 2)
    #expect(store.statistics().loads == 1)
  }

  @Test func `a failed refresh leaves the entry and is counted`() async throws {
    let store = base.cached(configuration { $0.refreshAfter = .seconds(8) }, clock: clock)
    try await store.setValue(1, forKey: "a")
    clock.advance(by: .seconds(8))
    base.schedule(.error(.ioFailed), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    while store.statistics().loadFailures == 0 { await Task.yield() }
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 1)
  }

  // MARK: Missing keys

  @Test func `missing keys are not cached by default`() async throws {
    let store = base.cached()
    for _ in 1...2 { #expect(try await store.value(forKey: "a") == nil) }
    #expect(base.operationCount == 2)
  }

  @Test func `missing keys are cached for the negative time to live`() async throws {
    let configuration = configuration {
      $0.timeToLive = .afterWrite(.seconds(60))
      $0.negativeTimeToLive = .seconds(5)
    }
    let store = base.cached(configuration, clock: clock)
    for _ in 1...2 { #expect(try await store.value(forKey: "a") == nil) }
    #expect(try await store.values(forKeys: ["a", "b"]) == [nil, nil])
    #expect(try await store.value(forKey: "b") == nil)
    #expect(base.operationCount == 2)
    #expect(store.statistics().hits == 3)
    try memory.apply([.set("a", 1)])
    clock.advance(by: .seconds(5))
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.value(forKey: "b") == nil)
    #expect(base.operationCount == 4)
    // A write ends a negative entry, and a removal creates one.
    try await store.setValue(2, forKey: "b")
    #expect(try await store.value(forKey: "b") == 2)
    try await store.removeValue(forKey: "b")
    #expect(try await store.value(forKey: "b") == nil)
    #expect(base.operationCount == 6)
  }

  // MARK: Limits

  @Test func `a full cache evicts entries`() async throws {
    let store = base.cached(CachedStoreConfiguration(entryLimit: 10))
    for number in 0..<100 { try await store.setValue(number, forKey: StoreKey(integer: number)) }
    #expect(store.statistics().evictions >= 80)
    for number in 0..<100 { #expect(try await store.value(forKey: StoreKey(integer: number)) == number) }
  }

  @Test func `an oversized value evicts nothing else and leaves no old value`() async throws {
    let store = base.cached(CachedStoreConfiguration(costLimit: 10) { _, value in value })
    try await store.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    try await store.setValue(11, forKey: "b")
    #expect(try await store.values(forKeys: ["a", "b", "c"], policy: .cacheOnly) == [1, nil, 3])
    #expect(try await store.value(forKey: "b") == 11)
    #expect(store.statistics().evictions == 0)
  }

  @Test func `a refused fill does not fail the read`() async throws {
    try memory.apply([.set("a", 11)])
    for configuration in [
      CachedStoreConfiguration<Int>(entryLimit: 0), CachedStoreConfiguration(costLimit: 10) { _, value in value },
    ] {
      let store = base.cached(configuration)
      for _ in 1...2 { #expect(try await store.value(forKey: "a") == 11) }
      #expect(try await store.values(forKeys: ["a", "b"]) == [11, nil])
    }
  }

  @Test func `a value may call the store in its deinitializer`() async throws {
    final class Caller: Sendable {
      let call: @Sendable () -> Void
      init(_ call: @escaping @Sendable () -> Void) { self.call = call }
      deinit { call() }
    }
    let memory = MemoryStore<Caller>()
    var configuration = CachedStoreConfiguration<Caller>(entryLimit: 2)
    configuration.negativeTimeToLive = .seconds(60)
    let store = memory.cached(configuration)
    let calls = Locked(0)
    // A call would wait for a lock that is held.
    let keys = (0..<200).map { StoreKey(integer: $0) }
    @Sendable func makeCaller() -> Caller {
      Caller { [weak store] in
        calls.withLock { $0 += 1 }
        for key in keys { #expect(throws: Never.self) { try store?.invalidate(key) } }
      }
    }
    for index in 0..<20 {
      let (key, others) = (keys[index], keys[(index + 1)...(index + 3)])
      try await store.setValue(makeCaller(), forKey: key)
      // The value is written past the cache, so that the cache has the last reference to the old one. A reload
      // displaces it,
      try memory.apply([.set(key, makeCaller())])
      #expect(try await store.value(forKey: key, policy: .reload) != nil)
      // other entries evict it,
      try memory.apply([.set(key, makeCaller())])
      for other in others { #expect(try await store.value(forKey: other) == nil) }
      // and a write or the removal of a range displaces it.
      #expect(try await store.value(forKey: key) != nil)
      try memory.apply([.set(key, makeCaller())])
      try await store.update(key) { $0 = makeCaller() }
      try memory.apply([.remove(key)])
      try await store.removeAll()
    }
    #expect(calls.withLock { $0 } == 5 * 20)
  }

  // MARK: Lifecycle

  @Test func `closing waits for loads and closes the base`() async throws {
    try memory.apply([.set("a", 1)])
    let store = base.cached()
    base.schedule(.suspension(.after), on: .value)
    let read = Task { try await store.value(forKey: "a") }
    try await base.waitForSuspended()
    read.cancel()
    await #expect(throws: CancellationError.self) { try await read.value }
    let closing = Task { try await store.close() }
    while try await store.isOpen { await Task.yield() }
    #expect(try memory.count(in: .all) == 1)
    base.resume()
    try await closing.value
    expectStoreError(.closed) { try memory.count(in: .all) }
  }

  @Test func `after closing everything is refused`() async throws {
    let store = base.cached()
    try await store.setValue(1, forKey: "a")
    try await store.close()
    for policy in LoadPolicy.allCases {
      await expectStoreError(.closed) { try await store.value(forKey: "a", policy: policy) }
      await expectStoreError(.closed) { try await store.values(forKeys: ["a"], policy: policy) }
    }
    await expectStoreError(.closed) { try await store.entries(in: .all, limit: 1) }
    expectStoreError(.closed) { try store.invalidate("a") }
    expectStoreError(.closed) { try store.invalidateAll() }
  }

  // MARK: Cancellation

  @Test func `a cancelled task reads cached entries`() async throws {
    try memory.apply([.set("a", 1), .set("b", 2)])
    let store = base.cached()
    #expect(try await store.value(forKey: "a") == 1)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return [try await store.value(forKey: "a"), try await store.value(forKey: "b")]
    }
    #expect(try await task.value == [1, 2])
  }

  // MARK: Descriptions

  @Test func `its description nests its base`() {
    #expect("\(base.cached())" == "CachedStore[FaultyStore[MemoryStore(memory)]]")
    #expect("\(memory.cached().cached())" == "CachedStore[CachedStore[MemoryStore(memory)]]")
  }

  @Test func `it forwards the properties of the base`() {
    let information = StoreInformation(
      name: "named", durability: .volatile, sharing: .betweenProcesses, maximumKeyLength: 5, maximumValueSize: 6)
    let store = ProbedStore(base: memory, information: information).cached()
    #expect(store.information.name == "named")
    #expect(store.information.sharing == .betweenProcesses)
    #expect(store.information.maximumKeyLength == 5)
    #expect(store.information.maximumValueSize == 6)
  }
}

extension CachedStore {
  /// A Boolean value that indicates whether closing has not started.
  fileprivate var isOpen: Bool {
    get async throws {
      do {
        _ = try await value(forKey: "?", policy: .cacheOnly)
        return true
      } catch StoreError.Code.closed {
        return false
      }
    }
  }
}

/// A store that runs the body of each update twice, as a store may do if its first commit had no effect.
struct RepeatingStore: PassingStore {
  typealias Value = Int

  let base: MemoryStore<Int>

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result {
    _ = try await base.update(deciding: keys) { slots in .discard(body(&slots).result) }
    return try await base.update(deciding: keys, body)
  }
}
