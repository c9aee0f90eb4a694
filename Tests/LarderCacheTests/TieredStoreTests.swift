import Foundation
import Larder
import LarderJSON
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// A cache in another store, whose copies outlive the object.
@Suite(.timeLimit(.minutes(60))) struct TieredStoreTests {
  typealias Store = TieredStore<FaultyStore<Server>, FaultyStore<MemoryStore<[UInt8]>>>

  let memory = MemoryStore<Int>()
  let probe: ProbedStore<Int>
  let base: FaultyStore<Server>
  let disk = MemoryStore<[UInt8]>()
  let cache: FaultyStore<MemoryStore<[UInt8]>>
  let clock = SettableClock()
  let failures = Failures()

  /// A store without the capabilities of the one inside.
  struct Server: PassingStore {
    let base: ProbedStore<Int>
  }

  /// A clock that can also be set back.
  final class SettableClock: Sendable {
    private let time = Locked(Date(timeIntervalSince1970: 1_000_000))

    var date: Date { time.withLock { $0 } }

    func pass(_ seconds: Double) { time.withLock { $0 += seconds } }
  }

  /// The errors of the cache that no caller has received.
  final class Failures: Sendable {
    private let errors = Locked<[any Error]>([])

    var count: Int { errors.withLock { $0.count } }

    func add(_ error: any Error) { errors.withLock { $0.append(error) } }
  }

  init() {
    probe = ProbedStore(
      base: memory, information: StoreInformation(name: "server", durability: .synced, sharing: .exclusive))
    base = Server(base: probe).faulty()
    cache = disk.faulty()
  }

  private func open(_ change: (inout TieredStoreConfiguration) -> Void = { _ in }) throws -> Store {
    var configuration = TieredStoreConfiguration()
    configuration.onCacheFailure = { [failures] in failures.add($0) }
    change(&configuration)
    return try base.cached(in: cache, codec: .json(Int.self), configuration: configuration) { [clock] in clock.date }
  }

  private func pass(_ seconds: Double) { clock.pass(seconds) }

  /// Waits until a load has been copied into the cache, which no reader waits for.
  private func waitUntilIdle(_ store: Store) async {
    while !store.state.withLock({ $0.busy.isIdle && $0.refreshes.count == 0 }) { await Task.yield() }
  }

  // MARK: Copies

  @Test func `copies outlive the object`() async throws {
    let first = try open()
    try await first.setValue(1, forKey: "a")
    try memory.apply([.set("b", 2)])
    #expect(try await first.value(forKey: "b") == 2)
    await waitUntilIdle(first)
    let second = try open()
    #expect(try await second.values(forKeys: ["b", "a", "b"]) == [2, 1, 2])
    #expect(probe.requests == [["b"]])
    #expect(second.statistics().hits == 3 && second.statistics().misses == 0)
  }

  @Test func `of several keys all are read if one is missing`() async throws {
    let store = try open()
    try await store.setValue(1, forKey: "a")
    #expect(try await store.values(forKeys: ["a", "b", "a"]) == [1, nil, 1])
    #expect(probe.requests == [["a", "b"]])
    #expect(try await store.values(forKeys: []) == [])
  }

  @Test func `a write removes the former copy first`() async throws {
    let store = try open()
    try await store.setValue(1, forKey: "a")
    base.schedule(.suspension(), on: .apply)
    let write = Task { try await store.setValue(2, forKey: "a") }
    try await base.waitForSuspended(of: .apply)
    // A process that died here would leave this cache.
    let next = try open()
    #expect(try await next.value(forKey: "a", policy: .cacheOnly) == nil)
    base.resume()
    try await write.value
    #expect(try await next.value(forKey: "a", policy: .cacheOnly) == 2)
  }

  @Test func `after a failed write nothing is cached`() async throws {
    let store = try open()
    try await store.apply([.set("a", 1), .set("b", 1)])
    base.schedule(.error(.ioFailed, .after), on: .apply)
    await expectStoreError(.ioFailed) { try await store.removeAll(in: "a"..."b") }
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, nil])
    #expect(try await store.value(forKey: "a") == nil)
    #expect(try await store.update("a") { value in value = (value ?? 0) + 7 } == ())
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 7)
  }

  @Test func `synchronizes a cache that can lose removals`() async throws {
    let buffered = ProbedStore(
      base: disk, information: StoreInformation(name: "disk", durability: .buffered, sharing: .exclusive)
    ).faulty()
    let store = try base.cached(in: buffered, codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    buffered.schedule(.error(.ioFailed), on: .synchronize)
    await expectStoreError(.ioFailed) { try await store.setValue(2, forKey: "a") }
    #expect(try memory.value(forKey: "a") == 1)
    try await store.setValue(2, forKey: "a")
    #expect(try memory.value(forKey: "a") == 2)
  }

  /// A power failure after the write could undo the eviction, and the next process would read the evicted copy.
  @Test(arguments: 1...20) func `a write waits until an eviction is durable`(seed: UInt64) async throws {
    let disk = SimulatedFileSystem(seed: seed)
    func open() async throws -> TieredStore<FaultyStore<Server>, JSONFileStore<[UInt8]>> {
      let cache = try await JSONFileStore<[UInt8]>(
        path: "/cache.json", codec: .json([UInt8].self), durability: .buffered, fileSystem: disk)
      return try base.cached(in: cache, codec: .json(Int.self))
    }
    let store = try await open()
    try await store.setValue(1, forKey: "a")
    try await store.cache.synchronize()
    // As a bounded store does.
    try await store.cache.removeValue(forKey: "a")
    try await store.setValue(2, forKey: "a")
    disk.losePower()
    disk.restart()
    #expect(try await open().value(forKey: "a") == 2)
  }

  @Test func `prefixes separate stores`() async throws {
    let (users, sizes) = (try open { $0.keyPrefix = "u/" }, try open { $0.keyPrefix = "s/" })
    try await users.setValue(1, forKey: "a")
    #expect(try await sizes.value(forKey: "a", policy: .cacheOnly) == nil)
    try await sizes.removeAll()
    #expect(try await users.value(forKey: "a", policy: .cacheOnly) == 1)
  }

  @Test func `keys that the cache cannot hold are not cached`() async throws {
    let store = try open { $0.keyPrefix = "prefix/" }
    let key = StoreKey(String(repeating: "k", count: StoreKey.maximumLength))
    try await store.setValue(1, forKey: key)
    #expect(try await store.values(forKeys: [key, "a"]) == [1, nil])
    #expect(failures.count == 0)
  }

  // MARK: Ages

  @Test func `a copy is not used beyond its time to live`() async throws {
    let store = try open { $0.timeToLive = .seconds(60) }
    try await store.setValue(1, forKey: "a")
    try memory.apply([.set("a", 2)])
    pass(59)
    #expect(try await store.value(forKey: "a") == 1)
    pass(1)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    #expect(try await store.value(forKey: "a") == 2)
    await waitUntilIdle(store)
    // A copy from the future has an unknown age.
    pass(-3600)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    try memory.apply([.remove("a")])
    #expect(try await store.value(forKey: "a") == nil)
    await waitUntilIdle(store)
    #expect(try disk.count(in: .all) == 0)
  }

  @Test func `missing keys are remembered for a while`() async throws {
    let store = try open { $0.negativeTimeToLive = .seconds(5) }
    #expect(try await store.value(forKey: "a") == nil)
    await waitUntilIdle(store)
    try memory.apply([.set("a", 1)])
    #expect(try await open { $0.negativeTimeToLive = .seconds(5) }.value(forKey: "a") == nil)
    pass(6)
    #expect(try await store.value(forKey: "a") == 1)
    #expect(probe.requests == [["a"], ["a"]])
  }

  @Test func `a copy is refreshed in the background`() async throws {
    let store = try open { $0.refreshAfter = .seconds(10) }
    try await store.setValue(1, forKey: "a")
    try memory.apply([.set("a", 2)])
    pass(10)
    base.schedule(.error(.timedOut), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    #expect(store.statistics().loadFailures == 1)
    // Another load begins only after a second.
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    #expect(store.statistics().loads == 1)
    pass(1)
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 2)
    try memory.apply([.remove("a")])
    pass(10)
    #expect(try await store.value(forKey: "a") == 2)
    await waitUntilIdle(store)
    #expect(try disk.count(in: .all) == 0)
  }

  @Test func `a time to live is required if copies can be wrong`() throws {
    func expectRefusal(
      _ information: StoreInformation, _ configuration: TieredStoreConfiguration = TieredStoreConfiguration()
    ) {
      let base = Server(base: ProbedStore(base: memory, information: information))
      expectStoreError(.invalidArgument) {
        try base.cached(in: disk, codec: .json(Int.self), configuration: configuration)
      }
    }
    expectRefusal(StoreInformation(name: "shared", durability: .synced, sharing: .betweenProcesses))
    expectRefusal(StoreInformation(name: "remote", durability: .synced, sharing: .betweenHosts))
    expectRefusal(StoreInformation(name: "volatile", durability: .volatile, sharing: .exclusive))
    expectRefusal(base.information, TieredStoreConfiguration(timeToLive: .zero))
    expectRefusal(base.information, TieredStoreConfiguration(refreshAfter: .seconds(-1)))
    let shared = Server(
      base: ProbedStore(
        base: memory, information: StoreInformation(name: "shared", durability: .synced, sharing: .betweenHosts)))
    _ = try shared.cached(
      in: disk, codec: .json(Int.self), configuration: TieredStoreConfiguration(timeToLive: .seconds(1)))
    let readOnly = ProbedStore(
      base: disk,
      information: StoreInformation(name: "cache", durability: .synced, sharing: .exclusive, access: .readOnly))
    expectStoreError(.notPermitted) { try base.cached(in: readOnly, codec: .json(Int.self)) }
  }

  @Test func `entries that expire are refused`() {
    expectStoreError(.unsupported) { try probe.cached(in: disk, codec: .json(Int.self)) }
  }

  /// Sets the clock back into the time before a failed load, when the copy is due all the same.
  @Test func `a clock that is set back does not prolong a pause`() async throws {
    let store = try open { $0.refreshAfter = .seconds(10) }
    try await store.setValue(1, forKey: "a")
    try memory.apply([.set("a", 2)])
    pass(100)
    base.schedule(.error(.timedOut), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    pass(-50)
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 2)
  }

  // MARK: Codecs

  /// The same bytes can be values of two codecs, as the next version of a program may find them.
  @Test func `another codec does not read a copy`() async throws {
    struct OtherCodec: Codec {
      let base = JSONCodec<Int>()
      let name = "other"
      var format: CodecFormat { base.format }

      func encode(_ value: Int, into bytes: inout [UInt8], context: ValueContext) throws {
        try base.encode(value, into: &bytes, context: context)
      }

      func decode(_ bytes: RawSpan, context: ValueContext) throws -> Int {
        -(try base.decode(bytes, context: context))
      }
    }
    try await open().apply([.set("a", 1), .set("b", 2)])
    var configuration = TieredStoreConfiguration(negativeTimeToLive: .seconds(60))
    configuration.onCacheFailure = { [failures] in failures.add($0) }
    let next = try base.cached(in: cache, codec: OtherCodec(), configuration: configuration)
    #expect(try await next.value(forKey: "a") == 1)
    try memory.apply([.remove("b")])
    #expect(try await next.value(forKey: "b") == nil)
    #expect(failures.count == 2)
  }

  // MARK: Policies

  @Test func `a reload replaces the copy`() async throws {
    let store = try open()
    try await store.setValue(1, forKey: "a")
    try memory.apply([.set("a", 2)])
    base.schedule(.error(.timedOut), on: .value)
    await expectStoreError(.timedOut) { _ = try await store.value(forKey: "a", policy: .reload) }
    // Offline, the copy stays.
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.value(forKey: "a", policy: .reload) == 2)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 2)
    try memory.apply([.remove("a")])
    #expect(try await store.values(forKeys: ["a", "b"], policy: .reload) == [nil, nil])
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
  }

  @Test func `invalidation removes copies`() async throws {
    let store = try open()
    try await store.apply([.set("a", 1), .set("b", 1)])
    try memory.apply([.set("a", 2), .set("b", 2)])
    try await store.invalidate("a")
    #expect(try await store.value(forKey: "a") == 2)
    #expect(try await store.value(forKey: "b") == 1)
    try await store.invalidateAll()
    #expect(try await store.value(forKey: "b") == 2)
  }

  // MARK: Races

  @Test func `readers share a load`() async throws {
    let store = try open()
    try memory.apply([.set("a", 1)])
    base.schedule(.suspension(), on: .value)
    let first = Task { try await store.value(forKey: "a") }
    try await base.waitForSuspended()
    let others = (0..<10).map { _ in Task { try await store.value(forKey: "a") } }
    while store.statistics().sharedLoads < 10 { await Task.yield() }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    base.resume()
    for other in others { #expect(try await other.value == 1) }
    #expect(store.statistics().loads == 1)
  }

  @Test func `a load that a write overtakes is not cached`() async throws {
    let store = try open()
    try memory.apply([.set("a", 1)])
    base.schedule(.suspension(.after), on: .value)
    let read = Task { try await store.value(forKey: "a") }
    try await base.waitForSuspended()
    try await store.removeValue(forKey: "a")
    base.resume()
    #expect(try await read.value == 1)
    await waitUntilIdle(store)
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func `a write waits for an insertion`() async throws {
    let store = try open()
    try memory.apply([.set("a", 1)])
    cache.schedule(.suspension(), on: .apply)
    #expect(try await store.value(forKey: "a") == 1)
    try await cache.waitForSuspended(of: .apply)
    let isWritten = Flag()
    let write = Task {
      try await store.removeValue(forKey: "a")
      isWritten.set()
    }
    while !store.state.withLock({ $0.busy.isBusy("a") }) { await Task.yield() }
    for _ in 0..<100 { await Task.yield() }
    #expect(try !isWritten.isSet && memory.value(forKey: "a") == 1)
    cache.resume()
    try await write.value
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
  }

  // MARK: Reports

  /// Opens a store over a base that reports its changes, some of which are made beside the store.
  private func openReported(
    _ base: FaultyStore<ObservingStore<MemoryStore<Int>>>
  ) throws -> TieredStore<FaultyStore<ObservingStore<MemoryStore<Int>>>, FaultyStore<MemoryStore<[UInt8]>>> {
    let configuration = TieredStoreConfiguration(timeToLive: .seconds(3600))
    return try base.cached(in: cache, codec: .json(Int.self), configuration: configuration) { [clock] in clock.date }
  }

  @Test func `a report that a write takes for its own voids the copy that it has not removed`() async throws {
    let base = memory.observable().faulty()
    let store = try openReported(base)
    try await store.setValue(1, forKey: "a")
    cache.schedule(.suspension(), on: .keys)
    let write = Task { try await store.update(deciding: ["a"]) { .discard($0[0]) } }
    try await cache.waitForSuspended(of: .keys)
    try await base.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    cache.resume()
    #expect(try await write.value == 2)
  }

  @Test func `a report after the copy of a write voids it`() async throws {
    let base = memory.observable().faulty()
    let store = try openReported(base)
    try await base.setValue(1, forKey: "a")
    cache.schedule(.suspension(.after), on: .apply)
    // It changes nothing, so the base does not report it.
    let write = Task { try await store.update(deciding: ["a"]) { .discard($0[0]) } }
    try await cache.waitForSuspended(of: .apply)
    try await base.setValue(2, forKey: "a")
    cache.resume()
    #expect(try await write.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  // MARK: Failures of the cache

  @Test func `reads do not need the cache`() async throws {
    let store = try open()
    try await store.setValue(1, forKey: "a")
    cache.schedule(.error(.ioFailed), on: .values)
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    try disk.apply([.set("a", Array("no copy".utf8)), .set("b", [])])
    #expect(try await store.value(forKey: "a") == 1)
    await waitUntilIdle(store)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 1)
    #expect(try await store.value(forKey: "b") == nil)
    await waitUntilIdle(store)
    #expect(try disk.value(forKey: "b") == nil)
    cache.schedule(.error(.full), on: .apply)
    #expect(try await store.update("c") { $0 = 3 } == ())
    #expect(try await store.value(forKey: "c") == 3)
    #expect(store.statistics().cacheFailures == 4 && failures.count == 4)
  }

  @Test func `a write needs the cache to forget`() async throws {
    let store = try open()
    try await store.setValue(1, forKey: "a")
    cache.schedule(.error(.full), on: .apply)
    await expectStoreError(.full) { try await store.setValue(2, forKey: "a") }
    #expect(try memory.value(forKey: "a") == 1)
    #expect(try await store.value(forKey: "a") == 1)
    // The copy may be gone, but to the caller, nothing has changed.
    cache.schedule(.error(.ioFailed, .after), on: .apply)
    let error = await expectStoreError(.ioFailed) { try await store.update("a") { $0 = 2 } }
    #expect(error?.outcome == .nothingChanged && error?.operation == .update)
    #expect(try memory.value(forKey: "a") == 1)
  }

  @Test func `closing closes both`() async throws {
    let store = try open()
    try memory.apply([.set("a", 1)])
    cache.schedule(.suspension(), on: .apply)
    #expect(try await store.value(forKey: "a") == 1)
    try await cache.waitForSuspended(of: .apply)
    let close = Task { try await store.close() }
    while !store.operations.isClosing { await Task.yield() }
    await expectStoreError(.closed) { _ = try await store.value(forKey: "a") }
    cache.resume()
    try await close.value
    expectStoreError(.closed) { try memory.value(forKey: "a") }
    expectStoreError(.closed) { try disk.value(forKey: "a") }
  }

  // MARK: One load for several hosts

  /// Two objects with one cache, as two hosts have: while one loads, the other waits, and then finds the copy.
  @Test func `a load alone is shared through the cache`() async throws {
    try await memory.setValue(1, forKey: "a")
    let gate = WriteGate()
    let open = {
      try self.open { configuration in
        configuration.loadingAlone = { _, load in try await gate.withAccess(.exclusive) { try await load() } }
      }
    }
    let (one, other) = (try open(), try open())
    base.schedule(.suspension(), on: .value)
    async let first = one.value(forKey: "a")
    try await base.waitForSuspended()
    async let second = other.value(forKey: "a")
    await yieldUntil { other.statistics().misses == 1 }
    base.resume()
    #expect(try await first == 1)
    #expect(try await second == 1)
    #expect(one.statistics().loads + other.statistics().loads == 1)
  }

  @Test func `the errors of a load alone reach its readers`() async throws {
    struct NoLock: Error {}
    let refusing = try open { $0.loadingAlone = { _, _ in throw NoLock() } }
    await #expect(throws: NoLock.self) { try await refusing.value(forKey: "a") }
    let forgetful = try open { $0.loadingAlone = { _, _ in } }
    await expectStoreError(.unsupported) { try await forgetful.value(forKey: "a") }
    let failing = try open { $0.loadingAlone = { _, load in try await load() } }
    base.schedule(.error(.ioFailed), on: .value)
    await expectStoreError(.ioFailed) { try await failing.value(forKey: "a") }
    // A lock that is lost after the load takes nothing away.
    try await memory.setValue(1, forKey: "a")
    let losing = try open {
      $0.loadingAlone = { _, load in
        try await load()
        throw NoLock()
      }
    }
    #expect(try await losing.value(forKey: "a") == 1)
    await waitUntilIdle(losing)
    #expect(try await losing.value(forKey: "a", policy: .cacheOnly) == 1)
  }
}
