import Larder
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// A cache over a base that hears late of the commits of other hosts.
@Suite struct LaggingReportsTests {
  /// A store of a guest that knows all commits up to a time.
  fileprivate final class DistantStore: PassingStore {
    let base = MemoryStore<Int>()
    let lag = Locked(Duration.zero)
    /// A Boolean value that indicates whether writes have no effect, as those of equal values in some layers.
    let skipsWrites = Locked(false)
    fileprivate let observers = StoreObservers()

    var information: StoreInformation {
      var information = base.information
      information.sharing = .betweenHosts
      information.reportedCommits = .ofAllHosts
      return information
    }

    func apply(_ changes: ChangeBatch<Int>) async throws {
      guard !skipsWrites.withLock(\.self) else { return }
      try base.apply(changes)
      observers.report(changes)
    }

    /// Writes on another host, which the store does not report.
    func writeAbroad(_ value: Int) throws { try base.apply([.set("a", value)]) }

    /// Reports that anything may have changed.
    func reportAll() { observers.report([.range(.all)]) }

    /// Reports what another host has written.
    func report() { observers.report([.range(.only("a"))]) }

    /// Reports what another object of the same process has written.
    func reportKey() { observers.report([.key("a")]) }
  }

  private let base = DistantStore()
  private let faulty: FaultyStore<DistantStore>

  init() {
    faulty = base.faulty()
  }

  private func setLag(_ lag: Duration) { base.lag.withLock { $0 = lag } }

  @Test func `cached entries are used until the lag is a second`() async throws {
    let store = faulty.cached()
    try await store.setValue(1, forKey: "a")
    try base.writeAbroad(2)
    setLag(.seconds(1))
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, nil])
    setLag(.seconds(1) + .nanoseconds(1))
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, nil])
    #expect(try await store.value(forKey: "a") == 2)
    try base.writeAbroad(3)
    #expect(try await store.values(forKeys: ["a", "b"]) == [3, nil])
    #expect(try await store.value(forKey: "a", policy: .reload) == 3)
    // An entry that was loaded in the meantime is used when the lag has ended.
    setLag(.zero)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 3)
    #expect(store.cache.isIdle)
  }

  @Test func `reads fail if the base fails while it lags`() async throws {
    let store = faulty.cached()
    try await store.setValue(1, forKey: "a")
    setLag(.seconds(2))
    faulty.schedule(.error(.ioFailed), on: .value)
    await expectStoreError(.ioFailed) { try await store.value(forKey: "a") }
    faulty.schedule(.error(.ioFailed), on: .values)
    await expectStoreError(.ioFailed) { try await store.values(forKeys: ["a", "b"]) }
    await expectStoreError(.invalidKey) { try await store.value(forKey: "", policy: .cacheOnly) }
    await expectStoreError(.invalidKey) { try await store.values(forKeys: [""], policy: .cacheOnly) }
  }

  @Test func `stale entries are served only if that is chosen`() async throws {
    var configuration = CachedStoreConfiguration<Int>()
    configuration.whenReportsLag = .serveStale
    let store = faulty.cached(configuration)
    try await store.setValue(1, forKey: "a")
    try base.writeAbroad(2)
    setLag(.seconds(3600))
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.values(forKeys: ["a"]) == [1])
    // A report removes the entry nevertheless.
    base.report()
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func `the limit of the lag can be chosen`() async throws {
    var configuration = CachedStoreConfiguration<Int>()
    configuration.maximumLag = .seconds(5)
    let store = faulty.cached(configuration)
    try await store.setValue(1, forKey: "a")
    try base.writeAbroad(2)
    setLag(.seconds(5))
    #expect(try await store.value(forKey: "a") == 1)
    setLag(.seconds(6))
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// The reader must not get the value of a load that began before the write.
  @Test func `a read does not join a load while the base lags`() async throws {
    let store = faulty.cached()
    try base.writeAbroad(1)
    faulty.schedule(.suspension(.after), on: .value)
    let early = Task { try await store.value(forKey: "a") }
    try await faulty.waitForSuspended()
    try base.writeAbroad(2)
    setLag(.seconds(2))
    #expect(try await store.value(forKey: "a") == 2)
    faulty.resume()
    #expect(try await early.value == 1)
    setLag(.zero)
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == 2)
  }

  /// The base reports nothing of an update that only reads.
  ///
  /// So the only report is that of another host.
  @Test func `a report during an update that only reads is of another host`() async throws {
    let store = faulty.cached()
    try base.writeAbroad(1)
    faulty.schedule(.suspension(.after), on: .update)
    let update = Task { try await store.update(deciding: ["a"]) { .discard($0[0]) } }
    try await faulty.waitForSuspended()
    try base.writeAbroad(2)
    base.report()
    faulty.resume()
    #expect(try await update.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// A layer below the cache may skip the write of a value that the base already has, so there is no report of it.
  @Test func `a report of another host is not taken for a skipped write`() async throws {
    let store = faulty.cached()
    try base.writeAbroad(1)
    base.skipsWrites.withLock { $0 = true }
    faulty.schedule(.suspension(.after), on: .apply)
    let write = Task { try await store.setValue(1, forKey: "a") }
    try await faulty.waitForSuspended()
    try base.writeAbroad(2)
    base.report()
    faulty.resume()
    try await write.value
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// Late reports, and those that come twice, cost a load at most.
  @Test func `a report may come late and twice`() async throws {
    let store = faulty.cached()
    try base.writeAbroad(1)
    try await store.setValue(2, forKey: "a")
    base.report()
    base.report()
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    #expect(try await store.value(forKey: "a") == 2)
  }

  // MARK: Copies in another store

  private let clock = TieredStoreTests.SettableClock()

  private func tiered<Cache: DataStore<[UInt8]>>(
    over disk: Cache, _ whenReportsLag: LaggingReads = .loadFromBase
  ) throws -> TieredStore<FaultyStore<DistantStore>, Cache> {
    var configuration = TieredStoreConfiguration(timeToLive: .seconds(3600))
    configuration.whenReportsLag = whenReportsLag
    clock.pass(1)
    let store = try faulty.cached(in: disk, codec: .json(Int.self), configuration: configuration) { [clock] in
      clock.date
    }
    clock.pass(1)
    return store
  }

  private func cached(_ store: TieredStore<some DataStore<Int>, some DataStore>) async throws -> Int? {
    // A load gives the value to its reader before it has stored the copy.
    await yieldUntil { store.state.withLock { $0.busy.isIdle } }
    return try await store.value(forKey: "a", policy: .cacheOnly)
  }

  @Test func `a reported copy is not used`() async throws {
    let store = try tiered(over: MemoryStore())
    try base.writeAbroad(1)
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await cached(store) == 1)
    try base.writeAbroad(2)
    clock.pass(1)
    base.report()
    #expect(try await cached(store) == nil)
    clock.pass(1)
    #expect(try await store.value(forKey: "a") == 2)
    #expect(try await cached(store) == 2)
    base.reportAll()
    #expect(try await cached(store) == nil)
  }

  @Test func `own writes are copied and those of others during them are not`() async throws {
    let store = try tiered(over: MemoryStore())
    try await store.setValue(1, forKey: "a")
    #expect(try await cached(store) == 1)
    faulty.schedule(.suspension(.after), on: .apply)
    let write = Task { try await store.setValue(2, forKey: "a") }
    try await faulty.waitForSuspended()
    try base.writeAbroad(3)
    base.report()
    faulty.resume()
    try await write.value
    #expect(try await cached(store) == nil)
    faulty.schedule(.suspension(.after), on: .update)
    let update = Task { try await store.update(deciding: ["a"]) { .discard($0[0]) } }
    try await faulty.waitForSuspended()
    try base.writeAbroad(4)
    base.report()
    faulty.resume()
    #expect(try await update.value == 3)
    #expect(try await store.value(forKey: "a") == 4)
  }

  /// The load arrives after the report.
  @Test func `a load that began before a report is not used`() async throws {
    let store = try tiered(over: MemoryStore())
    try base.writeAbroad(1)
    faulty.schedule(.suspension(.after), on: .value)
    let early = Task { try await store.value(forKey: "a") }
    try await faulty.waitForSuspended()
    try base.writeAbroad(2)
    clock.pass(1)
    base.report()
    faulty.resume()
    #expect(try await early.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// The reload itself writes nothing to the base, so the report is that of another writer.
  @Test func `a report while a reload replaces the copy is not its own`() async throws {
    let cache = MemoryStore<[UInt8]>().faulty()
    let store = try tiered(over: cache)
    try base.writeAbroad(1)
    #expect(try await store.value(forKey: "a") == 1)
    cache.schedule(.suspension(.before), on: .apply)
    let reload = Task { try await store.value(forKey: "a", policy: .reload) }
    try await cache.waitForSuspended()
    try base.writeAbroad(2)
    base.reportKey()
    cache.resume()
    #expect(try await reload.value == 1)
    clock.pass(1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// The report was taken for that of the write, which then did not take place.
  @Test func `a report during a write that fails in the cache is not lost`() async throws {
    let cache = MemoryStore<[UInt8]>().faulty()
    let store = try tiered(over: cache)
    try base.writeAbroad(1)
    #expect(try await store.value(forKey: "a") == 1)
    cache.schedule(.suspension(.before), on: .keys)
    cache.schedule(.error(.ioFailed), on: .apply)
    let write = Task { try await store.setValue(3, forKey: "a") }
    try await cache.waitForSuspended()
    try base.writeAbroad(2)
    base.reportKey()
    cache.resume()
    await expectStoreError(.ioFailed) { try await write.value }
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// A report is not forgotten if the clock is set back.
  @Test func `a report holds after the clock was set back`() async throws {
    let store = try tiered(over: MemoryStore())
    try base.writeAbroad(1)
    #expect(try await store.value(forKey: "a") == 1)
    clock.pass(-50)
    base.report()
    clock.pass(50)
    #expect(try await cached(store) == nil)
  }

  @Test func `copies of an earlier process are used only if that is chosen`() async throws {
    let disk = MemoryStore<[UInt8]>()
    try await tiered(over: disk).setValue(1, forKey: "a")
    #expect(try await cached(tiered(over: disk)) == nil)
    #expect(try await cached(tiered(over: disk, .serveStale)) == 1)
  }

  @Test func `copies are not used while the base lags`() async throws {
    let store = try tiered(over: MemoryStore())
    try await store.setValue(1, forKey: "a")
    try base.writeAbroad(2)
    setLag(.seconds(2))
    #expect(try await cached(store) == nil)
    #expect(try await store.values(forKeys: ["a"]) == [2])
    faulty.schedule(.error(.ioFailed), on: .value)
    await expectStoreError(.ioFailed) { try await store.value(forKey: "a") }
    let stale = try tiered(over: MemoryStore(), .serveStale)
    try await stale.setValue(3, forKey: "a")
    try base.writeAbroad(4)
    #expect(try await stale.value(forKey: "a") == 3)
  }

  @Test func `many reported keys count as all`() {
    var times = ReportedTimes()
    for number in 0..<10_000 { times.note(.key(StoreKey(integer: number)), at: 5) }
    #expect(!times.permits(5, of: StoreKey(integer: 7)) && times.permits(5, of: "x"))
    times.note(.key("one more"), at: 6)
    #expect(!times.permits(6, of: "x") && times.permits(7, of: "x"))
    for number in 0..<16 { times.note(.range(.prefix(StoreKey("p\(number)/"))), at: 8) }
    #expect(!times.permits(8, of: "p3/a") && times.permits(8, of: "x"))
    times.note(.range(.prefix("q")), at: 8)
    #expect(!times.permits(8, of: "x"))
  }

  @Test func `views and layers pass the lag on`() async throws {
    setLag(.seconds(7))
    let observable = try #require(AnyDataStore(base.faulty()).observation)
    #expect(observable.observe(.all) { _ in }.lag == .seconds(7))
    #expect(MemoryStore<Int>().observable().observe(.all) { _ in }.lag == .zero)
  }
}

extension LaggingReportsTests.DistantStore: ObservableStore {
  func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    let lag: @Sendable () -> Duration = { [lag = self] in lag.lag.withLock(\.self) }
    return observers.add(range, lag: lag, observer)
  }
}
