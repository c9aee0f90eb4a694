#if Compression && LMDB && SQLite
import Foundation
import Larder
import LarderBounded
import LarderExpiry
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// A limit that strikes.
@Suite struct BoundedStoreTests {
  private let clock = WallClock()
  private let log = EvictionLog()

  /// Options under which every entry may have the whole limit, and every use is due.
  private var configuration: BoundedStoreConfiguration {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 1
    configuration.useInterval = .zero
    configuration.now = { [clock] in Date(timeIntervalSince1970: clock.seconds) }
    configuration.onEviction = { [log] in log.add($0) }
    return configuration
  }

  /// A value of an entry of 10 bytes whose key has one byte.
  private let nine = [UInt8](repeating: 9, count: 9)

  @Test func `the entry not used for longest goes first`() async throws {
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 30, configuration: configuration)
    for key in ["a", "b", "c"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    #expect(try await store.usage() == BoundedUsage(bytes: 30, entries: 3))
    #expect(log.take() == [])
    try await store.setValue(nine, forKey: "d")
    #expect(try await store.allKeys == ["b", "c", "d"])
    let evictions = log.take()
    #expect(evictions.map(\.key) == ["a"])
    #expect(evictions.map(\.byteCount) == [10] && evictions.map(\.reason) == [.limit])
    // A larger value needs the room of two.
    try await store.setValue([UInt8](repeating: 1, count: 14), forKey: "e")
    #expect(try await store.allKeys == ["d", "e"])
    #expect(store.statistics().evictedCount == 3 && store.statistics().evictedBytes == 30)
    try await store.expectConsistent()
  }

  @Test func `a read is a use and a scan is not`() async throws {
    var configuration = configuration
    // Uses count in memory, and none is persisted in the meantime.
    configuration.useInterval = .seconds(60)
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: .max, entries: 3, configuration: configuration)
    for key in ["a", "b", "c"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    _ = try await store.value(forKey: "a")
    try await store.setValue(nine, forKey: "d")
    #expect(try await store.allKeys == ["a", "c", "d"])
    _ = try await store.values(forKeys: ["c", "missing"])
    _ = try await store.entries(in: .all, limit: .max)
    try await store.setValue(nine, forKey: "e")
    // The eviction of "b" has given "a" a new place, and "d" was written before that.
    #expect(try await store.allKeys == ["a", "c", "e"])
    // An update that leaves an entry unchanged is no use.
    try await store.update(["a"]) { _ in }
    try await store.synchronize()
    try await store.update(["c"]) { slots in slots[0]?.append(1) }
    try await store.setValue(nine, forKey: "f")
    #expect(try await store.allKeys == ["c", "e", "f"])
    try await store.expectConsistent()
  }

  /// The use of an entry that was removed is not that of a later one with the same key.
  @Test func `an entry that is set again has not been used`() async throws {
    var configuration = configuration
    configuration.useInterval = .seconds(60)
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: .max, entries: 3, configuration: configuration)
    try await store.setValue(nine, forKey: "a")
    _ = try await store.value(forKey: "a")
    try await store.removeValue(forKey: "a")
    for key in ["a", "b", "c", "d"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    #expect(try await store.allKeys == ["b", "c", "d"])
    try await store.expectConsistent()
  }

  @Test func `if everything was used the first used one goes`() async throws {
    var configuration = configuration
    configuration.useInterval = .seconds(60)
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: .max, entries: 3, configuration: configuration)
    for key in ["a", "b", "c"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    _ = try await store.values(forKeys: ["a", "b", "c"])
    try await store.setValue(nine, forKey: "d")
    #expect(try await store.allKeys == ["b", "c", "d"])
    try await store.expectConsistent()
  }

  @Test func `a too large entry evicts nothing`() async throws {
    var configuration = configuration
    configuration.maximumShare = 0.5
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 30, configuration: configuration)
    for key in ["a", "b", "c"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    let large = [UInt8](repeating: 1, count: 15)
    try await store.setValue(large, forKey: "d")
    #expect(try await store.allKeys == ["a", "b", "c"])
    // The former value is no longer that of the key.
    try await store.setValue(large, forKey: "b")
    #expect(try await store.allKeys == ["a", "c"])
    try await store.update(["c"]) { $0[0] = large }
    #expect(try await store.allKeys == ["a"])
    let refused = log.take()
    #expect(refused.map(\.key) == ["d", "b", "c"])
    #expect(refused.allSatisfy { $0.reason == .share && $0.byteCount == 16 })
    #expect(store.statistics().refusedCount == 3 && store.statistics().evictedCount == 0)
    try await store.setValue([UInt8](repeating: 1, count: 14), forKey: "e")
    #expect(try await store.allKeys == ["a", "e"])
    try await store.expectConsistent()
  }

  @Test func `a batch that does not fit is refused whole`() async throws {
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 30, entries: 5, configuration: configuration)
    try await store.setValue(nine, forKey: "a")
    let four = ChangeBatch<[UInt8]>(["b", "c", "d", "e"].map { .set($0, nine) })
    var replacing = ChangeBatch<[UInt8]>([.removeAll(.all)])
    for change in four.changes { replacing.append(change) }
    for batch in [four, replacing, ChangeBatch((0..<6).map { .set(StoreKey("\($0)"), []) })] {
      let error = await expectStoreError(.full) { try await store.apply(batch) }
      #expect(error?.outcome == .nothingChanged && error?.operation == .apply)
      #expect(try await store.allKeys == ["a"])
    }
    let value = nine
    await expectStoreError(.full) {
      try await store.update(["a", "b", "c", "d"]) { slots in slots.assign(slots.map { $0 ?? value }) }
    }
    #expect(try await store.allKeys == ["a"])
    // The entries of a batch never evict one another.
    try await store.apply([.set("b", nine), .set("c", nine), .set("d", nine), .set("b", nine)])
    #expect(try await store.allKeys == ["b", "c", "d"])
    try await store.apply([.set("x", nine), .removeAll(.all), .set("y", nine)])
    #expect(try await store.allKeys == ["y"])
    #expect(log.take().map(\.key) == ["a"])
    try await store.expectConsistent()
  }

  @Test func `removals free room`() async throws {
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 50, configuration: configuration)
    for key in ["a", "b", "c", "d", "e"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    try await store.removeAll(in: "b"..<"d")
    try await store.removeValue(forKey: "missing")
    #expect(try await store.usage() == BoundedUsage(bytes: 30, entries: 3))
    try await store.apply([.removeAll("a"..<"b"), .set("f", nine), .set("g", nine), .removeAll("g"...)])
    #expect(try await store.allKeys == ["d", "e", "f"])
    try await store.expectConsistent()
    try await store.removeAll()
    #expect(try await store.usage() == BoundedUsage(bytes: 0, entries: 0))
    #expect(log.take() == [])
    try await store.expectConsistent()
  }

  // MARK: Recency

  @Test func `the order of use survives reopening`() async throws {
    let folder = try TemporaryFolder()
    func open() async throws -> BoundedStore<LMDBStore<[UInt8]>> {
      try await LMDBStore(path: folder.path("environment"), codec: .raw, durability: .buffered)
        .bounded(bytes: 30, configuration: configuration)
    }
    let store = try await open()
    for key in ["a", "b", "c"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    _ = try await store.value(forKey: "a")
    // Closing persists the use.
    try await store.close()
    let again = try await open()
    try await again.setValue(nine, forKey: "d")
    #expect(try await again.allKeys == ["a", "c", "d"])
    try await again.expectConsistent()
    try await again.close()
  }

  @Test func `a read waits for no write`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let store = try await base.bounded(bytes: 1000, configuration: configuration)
    try await store.setValue(nine, forKey: "a")
    base.schedule(.suspension(), on: .update)
    _ = try await store.value(forKey: "a")
    // The interval is zero, so the use is being persisted, and waits.
    try await base.waitForSuspended(1, of: .update)
    #expect(try await store.value(forKey: "a") == nine)
    base.resume()
    try await store.close()
    #expect(store.statistics().persistedUseCount >= 1)
  }

  @Test func `a hot entry is persisted once in an interval`() async throws {
    var configuration = configuration
    configuration.useInterval = .seconds(60)
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 1000, configuration: configuration)
    try await store.setValue(nine, forKey: "a")
    func read() async throws {
      for _ in 0..<100 { _ = try await store.value(forKey: "a") }
      try await store.synchronize()
    }
    // The write was a use.
    try await read()
    #expect(store.statistics().persistedUseCount == 0)
    for round in 1...3 {
      clock.seconds += 60
      try await read()
      try await read()
      #expect(store.statistics().persistedUseCount == round)
    }
    // After the clock was set back, the time since the last use is not known.
    clock.seconds -= 1_000_000
    try await read()
    try await read()
    #expect(store.statistics().persistedUseCount == 4)
    try await store.expectConsistent()
  }

  @Test func `a clock that jumps does not change the order`() async throws {
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 30, configuration: configuration)
    clock.seconds += 1e9
    try await store.setValue(nine, forKey: "a")
    clock.seconds -= 1.5e9
    for key in ["b", "c", "d", "e"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    #expect(try await store.allKeys == ["c", "d", "e"])
    try await store.expectConsistent()
  }

  /// Within the interval, the use of an entry that this process has written is not looked up.
  @Test func `a use soon after the write reads nothing`() async throws {
    var configuration = configuration
    configuration.useInterval = .seconds(60)
    let base = MemoryStore<[UInt8]>().faulty()
    let store = try await base.bounded(bytes: .max, configuration: configuration)
    let keys = (0..<1000).map { StoreKey(integer: $0) }
    try await store.apply(ChangeBatch(keys.map { .set($0, nine) }))
    clock.seconds += 59
    let before = base.operationCount
    for key in keys { #expect(try await store.value(forKey: key) != nil) }
    try await store.synchronize()
    #expect(base.operationCount - before == keys.count + 1)
    clock.seconds += 1
    _ = try await store.values(forKeys: keys)
    try await store.synchronize()
    #expect(store.statistics().persistedUseCount == keys.count)
    try await store.expectConsistent()
  }

  @Test func `many uses share a commit`() async throws {
    var configuration = configuration
    // Nothing is written before there are as many uses as a batch has.
    configuration.useInterval = .seconds(60)
    let base = MemoryStore<[UInt8]>().faulty()
    let store = try await base.bounded(bytes: .max, configuration: configuration)
    try await store.apply(ChangeBatch((0..<256).map { .set(StoreKey(integer: $0), nine) }))
    let keys = (0..<256).map { StoreKey(integer: $0) }
    clock.seconds += 60
    let before = base.operationCount
    _ = try await store.values(forKeys: keys)
    try await store.synchronize()
    #expect(store.statistics().persistedUseCount == 256)
    // Reading, two batches of a read and an update each, and synchronizing.
    #expect(base.operationCount - before <= 6)
  }

  @Test func `a failed use fails no read`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let store = try await base.bounded(bytes: 100, configuration: configuration)
    try await store.setValue(nine, forKey: "a")
    base.schedule(.error(.ioFailed), on: .update)
    #expect(try await store.value(forKey: "a") == nine)
    try await store.synchronize()
    #expect(store.statistics().failureCount == 1 && store.statistics().lastError != nil)
    try await store.expectConsistent()
  }

  @Test func `a flush persists uses first`() async throws {
    struct FlushingStore: PassingStore, FlushableStore {
      typealias Value = [UInt8]

      let base: MemoryStore<[UInt8]>

      func flush() async throws {}
    }
    var configuration = configuration
    // Nothing else persists a single use.
    configuration.useInterval = .seconds(60)
    let base = FlushingStore(base: MemoryStore<[UInt8]>()).faulty()
    let store = try await base.bounded(bytes: 1000, configuration: configuration)
    try await store.setValue(nine, forKey: "a")
    clock.seconds += 60
    _ = try await store.value(forKey: "a")
    #expect(store.statistics().persistedUseCount == 0)
    base.schedule(.error(.ioFailed), on: .flush)
    await expectStoreError(.ioFailed) { try await store.flush() }
    #expect(store.statistics().persistedUseCount == 1)
  }

  // MARK: Opening

  @Test func `values without accounting are adopted`() async throws {
    let base = MemoryStore<[UInt8]>()
    for number in 0..<300 { try await base.setValue(nine, forKey: StoreKey("v/\(1000 + number)")) }
    let store = try await base.bounded(bytes: 13 * 200, configuration: configuration)
    #expect(try await store.allKeys == (1100..<1300).map { StoreKey("\($0)") })
    try await store.expectConsistent()
  }

  @Test func `a repair that did not end is repeated at opening`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    for number in 0..<300 { try await base.setValue(nine, forKey: StoreKey("v/\(1000 + number)")) }
    base.schedule(.error(.ioFailed), on: .update, number: 3)
    let configuration = configuration
    await expectStoreError(.ioFailed) { try await base.bounded(bytes: .max, configuration: configuration) }
    let store = try await base.bounded(bytes: .max, configuration: configuration)
    #expect(try await store.usage() == BoundedUsage(bytes: 3900, entries: 300))
    try await store.expectConsistent()
  }

  @Test func `opening reads one record`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let first = try await base.bounded(bytes: .max, configuration: configuration)
    try await first.setValue(nine, forKey: "a")
    let before = base.operationCount
    _ = try await base.bounded(bytes: .max, configuration: configuration)
    // The trim reads the totals again.
    #expect(base.operationCount - before == 2)
  }

  @Test func `invalid arguments are refused`() async throws {
    let changes: [(inout BoundedStoreConfiguration) -> Void] = [
      { $0.maximumShare = 0 }, { $0.maximumShare = 1.1 }, { $0.maximumShare = .nan }, { $0.useInterval = .seconds(-1) },
      { $0.recordPrefix = "v/b" }, { $0.valuePrefix = "" },
    ]
    for change in changes {
      var configuration = configuration
      change(&configuration)
      await expectStoreError(.invalidArgument) {
        try await MemoryStore<[UInt8]>().bounded(bytes: 10, configuration: configuration)
      }
    }
    await expectStoreError(.invalidArgument) { try await MemoryStore<[UInt8]>().bounded(bytes: 0) }
    await expectStoreError(.invalidArgument) { try await MemoryStore<[UInt8]>().bounded(bytes: 1, entries: 0) }
    // With the prefix of the values, the key would be a valid one of the base.
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 100)
    await expectStoreError(.invalidKey) { try await store.update("") { $0 = [1] } }
    // The accounting would expire, too.
    let expiring = MemoryStore<Expiring<[UInt8]>>().expiring(.after(.seconds(1)))
    await expectStoreError(.unsupported) { try await expiring.bounded(bytes: 100) }
  }

  // MARK: Other decorators

  @Test func `evictions are reported to observers`() async throws {
    let store = try await MemoryStore<[UInt8]>().observable().bounded(bytes: 20, configuration: configuration)
    let events = StoreEvents()
    let observation = events.observe(store)
    try await store.setValue(nine, forKey: "a")
    try await store.setValue(nine, forKey: "b")
    #expect(events.take() == [.changed([.key("a")]), .changed([.key("b")])])
    try await store.setValue(nine, forKey: "c")
    guard case .changed(let changes)? = events.take().first else { throw CancellationError() }
    #expect(Set(changes) == [.key("a"), .key("c")])
    _ = try await store.value(forKey: "b")
    try await store.synchronize()
    #expect(events.take() == [])
    observation.cancel()
  }

  @Test func `expired entries free room`() async throws {
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 10_000, configuration: configuration)
    let expiring = store.typed(Expiring<String>.self, codec: .json(String.self).expiring())
      .expiring(.after(.seconds(60)), now: { [clock] in Date(timeIntervalSince1970: clock.seconds) })
    for number in 0..<20 { try await expiring.setValue("text", forKey: StoreKey("\(number)")) }
    clock.seconds += 61
    #expect(try await expiring.purgeExpired() > 0)
    #expect(try await expiring.count() == 0)
    #expect(try await store.usage() == BoundedUsage(bytes: 0, entries: 0))
    try await store.expectConsistent()
  }

  @Test func `statistics count entries`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore(path: folder.path("environment"), codec: .raw, durability: .buffered)
      .bounded(bytes: 30, configuration: configuration)
    for key in ["a", "b", "c", "d"] { try await store.setValue(nine, forKey: StoreKey(key)) }
    let statistics = try await store.storeStatistics()
    #expect(statistics.entryCount == 3)
    #expect(statistics.details.contains(StoreStatistics.Detail(name: "boundedBytes", value: 30)))
    #expect(try await store.verify() == VerificationReport(entryCount: 3))
    try await store.close()
    await expectStoreError(.closed) { try await store.usage() }
    await expectStoreError(.closed) { try await store.repairAccounting() }
    let readOnly = try await LMDBStore(
      path: folder.path("environment"), codec: .raw, durability: .buffered, access: .readOnly
    ).bounded(bytes: 10, configuration: configuration)
    #expect(try await readOnly.value(forKey: "d") == nine)
    #expect(try await readOnly.verifyAccounting().findings == [])
    await expectStoreError(.notPermitted) { try await readOnly.setValue([], forKey: "a") }
    await expectStoreError(.notPermitted) { try await readOnly.repairAccounting() }
    try await readOnly.close()
  }
}
#endif
