#if LMDB
import Larder
import LarderBatching
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// Writes beside a cache whose base reports them.
@Suite(.timeLimit(.minutes(60))) struct ReportedWritesTests {
  private let base = MemoryStore<Int>().observable()

  private func cached(_ store: CachedStore<some DataStore<Int>>, _ keys: [StoreKey]) async throws -> [Int?] {
    try await store.values(forKeys: keys, policy: .cacheOnly)
  }

  @Test func `a write beside the cache is read at once`() async throws {
    let store = base.cached()
    try await store.apply([.set("a", 1), .set("b", 1), .set("c", 1)])
    try await base.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    try await base.update(["a", "x"]) { $0.assign([3, 3]) }
    #expect(try await store.values(forKeys: ["a", "x"]) == [3, 3])
    try await base.removeValue(forKey: "a")
    #expect(try await store.value(forKey: "a") == nil)
    try await base.apply([.removeAll("b"..<"c")])
    #expect(try await cached(store, ["b", "c"]) == [nil, 1])
    #expect(try await store.value(forKey: "b") == nil)
  }

  @Test func `a large batch beside the cache is read at once`() async throws {
    let store = base.cached()
    try await store.apply([.set("k", 1), .set("m7", 1), .set("n", 1)])
    try await base.apply(ChangeBatch((0..<300).map { .set(StoreKey("m\($0)"), 2) }))
    #expect(try await cached(store, ["k", "m7", "n"]) == [1, nil, 1])
    #expect(try await store.value(forKey: "m7") == 2)
  }

  @Test func `a missing key that is written beside the cache is found`() async throws {
    var configuration = CachedStoreConfiguration<Int>()
    configuration.negativeTimeToLive = .seconds(3600)
    let store = base.cached(configuration)
    #expect(try await store.value(forKey: "a") == nil)
    try await store.removeValue(forKey: "b")
    #expect(store.cache.entry(of: "a") != nil && store.cache.entry(of: "b") != nil)
    try await base.apply([.set("a", 1), .set("b", 1)])
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, 1])
  }

  /// The reports of the cache's own writes leave what they have written.
  @Test func `written values are cached`() async throws {
    let store = base.cached()
    try await store.setValue(1, forKey: "a")
    try await store.apply([.set("b", 2), .remove("c"), .removeAll("x"..<"z")])
    try await store.update(["d", "e"]) { $0.assign([4, 5]) }
    // Also if an equal value was there.
    try await store.setValue(1, forKey: "a")
    #expect(try await cached(store, ["a", "b", "d", "e"]) == [1, 2, 4, 5])
    #expect(store.cache.isIdle)
  }

  /// They cannot be told from those of a commit that is shared with other writers.
  @Test func `values that are reported more than once are not cached`() async throws {
    let store = base.cached()
    try await store.apply([.set("a", 1), .set("a", 2), .removeAll("b"..<"c"), .set("b", 3), .set("d", 4)])
    #expect(try await cached(store, ["a", "b", "d"]) == [nil, nil, 4])
    try await store.apply(ChangeBatch((0...10_000).map { .set(StoreKey("m\($0)"), $0) }))
    #expect(try await cached(store, ["m7", "d"]) == [nil, 4])
    #expect(try await store.values(forKeys: ["a", "b", "m7"]) == [2, 3, 7])
  }

  // MARK: Stacks

  @Test func `caches of one store see each others writes`() async throws {
    let (first, second) = (base.cached(), base.cached())
    for value in 0..<5 {
      try await first.setValue(value, forKey: "a")
      #expect(try await second.value(forKey: "a") == value)
      try await second.update("a") { $0 = value + 100 }
      #expect(try await first.value(forKey: "a") == value + 100)
      #expect(try await cached(second, ["a"]) == [value + 100])
    }
  }

  @Test func `a cache over a cache sees the writes beside both`() async throws {
    let inner = base.cached()
    let outer = inner.cached()
    try await outer.setValue(1, forKey: "a")
    #expect(try await cached(inner, ["a"]) + cached(outer, ["a"]) == [1, 1])
    try await base.setValue(2, forKey: "a")
    #expect(try await outer.value(forKey: "a") == 2)
    try await inner.setValue(3, forKey: "a")
    #expect(try await outer.value(forKey: "a") == 3)
  }

  @Test func `caches of views see the writes to the bytes`() async throws {
    let bytes = MemoryStore<[UInt8]>().observable()
    let numbers = bytes.typed(Int.self, prefix: "n/", codec: .json()).cached()
    let texts = bytes.typed(String.self, prefix: "t/", codec: .json()).cached()
    try await numbers.setValue(1, forKey: "a")
    try await texts.setValue("x", forKey: "a")
    try await bytes.setValue(Array("2".utf8), forKey: "n/a")
    #expect(try await numbers.value(forKey: "a") == 2)
    #expect(try await texts.value(forKey: "a", policy: .cacheOnly) == "x")
    try await bytes.apply([.removeAll(.all)])
    #expect(try await numbers.value(forKey: "a") == nil)
    #expect(try await texts.value(forKey: "a") == nil)
  }

  @Test func `an erased store is observed`() async throws {
    let store = AnyDataStore(base.batched()).cached()
    try await store.setValue(1, forKey: "a")
    try await base.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
  }

  /// One commit, and therefore one report, may hold a write through the cache and one beside it.
  @Test(arguments: [false, true]) func `a commit may be shared with a write beside the cache`(_ isRange: Bool)
    async throws
  {
    let faulty = base.faulty()
    let batched = faulty.batched()
    let store = batched.cached()
    faulty.schedule(.suspension(), on: .apply)
    let first = Task { try await batched.setValue(0, forKey: "first") }
    try await faulty.waitForSuspended()
    let own = Task { try await store.setValue(1, forKey: "a") }
    while batched.waitingCount < 1 { await Task.yield() }
    let change: BatchChange<Int> = isRange ? .removeAll(.all) : .set("a", 2)
    let beside = Task { try await batched.apply([change]) }
    while batched.waitingCount < 2 { await Task.yield() }
    faulty.resume()
    for task in [first, own, beside] { try await task.value }
    #expect(faulty.operationCount == 2)
    #expect(try await store.value(forKey: "a") == (isRange ? nil : 2))
  }

  @Test func `accepted writes beside the cache are read at once`() async throws {
    let clock = ManualClock()
    let later = base.writeBehind(maximumAge: .seconds(1), clock: clock)
    let store = later.cached()
    try await store.setValue(1, forKey: "a")
    #expect(try await store.value(forKey: "a") == 1)
    try await later.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    try await later.flush()
    #expect(try await store.value(forKey: "a") == 2)
    try await base.setValue(3, forKey: "a")
    #expect(try await store.value(forKey: "a") == 3)
    try await later.close()
  }

  @Test func `values that write behind gives up are forgotten`() async throws {
    let faulty = base.faulty()
    let clock = ManualClock()
    let later = faulty.writeBehind(maximumAge: .seconds(1), clock: clock)
    let store = later.cached()
    try await base.setValue(1, forKey: "a")
    faulty.schedule(.error(.invalidArgument), on: .apply)
    try await store.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    await expectStoreError(.invalidArgument) { try await later.flush() }
    #expect(try await store.value(forKey: "a") == 1)
    #expect(later.takeFailures().count == 1)
    try await later.close()
  }

  // MARK: Lifecycle

  @Test func `the observation ends with the cache`() async throws {
    let observed = ObserverCount(base: MemoryStore<Int>())
    var store: CachedStore<ObserverCount>? = observed.cached()
    weak let entries = store?.cache
    try await store?.setValue(1, forKey: "a")
    #expect(!observed.observers.isEmpty)
    #expect(entries != nil)
    store = nil
    #expect(observed.observers.isEmpty)
    #expect(entries == nil)
  }

  @Test func `a base that is closed elsewhere leaves no entries`() async throws {
    let store = base.cached()
    try await store.setValue(1, forKey: "a")
    try await base.close()
    await expectStoreError(.closed) { try await store.value(forKey: "a") }
    try await store.close()
  }
}

/// A store that shows its observers.
private struct ObserverCount: PassingStore, ObservableStore {
  typealias Value = Int

  let base: MemoryStore<Int>
  let observers = StoreObservers()

  func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    observers.add(range, observer)
  }

  func weakReference() -> @Sendable () -> ObserverCount? {
    { self }
  }
}

#if LMDB
/// Writes beside a cache over LMDB: transactions, and other stores with the same entries.
extension ReportedWritesTests {
  private struct Shop {
    let folder: TemporaryFolder
    let environment: LMDBEnvironment
    let customers: LMDBStore<String>
    let orders: LMDBStore<Int>

    init() async throws {
      folder = try TemporaryFolder()
      environment = try await LMDBEnvironment(path: folder.path("shop"), durability: .buffered)
      customers = try await LMDBStore(in: environment, name: "customers")
      orders = try await LMDBStore(in: environment, name: "orders")
    }
  }

  @Test func `transactions are read at once`() async throws {
    let shop = try await Shop()
    let (customers, orders) = (shop.customers.cached(), shop.orders.cached())
    try await customers.setValue("Ada", forKey: "7")
    try await orders.apply([.set("7/1", 1), .set("7/2", 2), .set("8/1", 1)])
    #expect(try await customers.value(forKey: "7", policy: .cacheOnly) == "Ada")
    try await shop.environment.write { [shop] transaction in
      try transaction.setValue("Grace", forKey: "7", in: shop.customers)
      try transaction.setValue(3, forKey: "7/1", in: shop.orders)
    }
    #expect(try await customers.value(forKey: "7") == "Grace")
    #expect(try await orders.values(forKeys: ["7/1", "7/2"]) == [3, 2])
    try await shop.environment.write { [shop] transaction in
      try transaction.removeAll(in: .prefix("7/"), of: shop.orders)
    }
    #expect(try await orders.values(forKeys: ["7/1", "7/2"]) == [nil, nil])
    #expect(try await orders.values(forKeys: ["7/1", "7/2", "8/1"], policy: .cacheOnly) == [nil, nil, 1])
    // A transaction of one store leaves the entries of the others.
    #expect(try await customers.value(forKey: "7", policy: .cacheOnly) == "Grace")
    // A transaction that throws has changed nothing.
    struct Regret: Error {}
    await #expect(throws: Regret.self) {
      try await shop.environment.write { [shop] transaction in
        try transaction.setValue("Alan", forKey: "7", in: shop.customers)
        throw Regret()
      }
    }
    #expect(try await customers.value(forKey: "7", policy: .cacheOnly) == "Grace")
  }

  @Test func `another object on the same store is read at once`() async throws {
    let shop = try await Shop()
    let other = try await LMDBStore<Int>(in: shop.environment, name: "orders").cached()
    let orders = shop.orders.cached()
    for value in 1...5 {
      try await orders.setValue(value, forKey: "a")
      #expect(try await other.value(forKey: "a") == value)
      #expect(try await orders.value(forKey: "a", policy: .cacheOnly) == value)
      try await other.update("a") { $0 = -value }
      #expect(try await orders.value(forKey: "a") == -value)
    }
  }
}
#endif
#endif
