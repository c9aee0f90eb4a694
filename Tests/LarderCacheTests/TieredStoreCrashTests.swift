import Foundation
import Larder
import LarderCache
import LarderJSON
import LarderTesting
import TestSupport
import Testing

/// Processes that die and power that fails at every operation of the disk during a write, between the cache and the base.
///
/// The cache has copies of the entries, and knows that a key is missing. The next process finds nothing in it that differs
/// from the base.
@Suite(.timeLimit(.minutes(60))) struct TieredStoreCrashTests {
  private typealias Store = TieredStore<JSONFileStore<Int>, JSONFileStore<[UInt8]>>

  enum Write: CaseIterable, Sendable {
    case set, insert, remove, update, batch, removeRange, removeAll
  }

  enum Crash: CaseIterable, Sendable {
    case kill, powerLoss
  }

  private static let keys: [StoreKey] = ["a", "b", "missing"]

  private static func open(_ disk: SimulatedFileSystem, _ durability: Durability.File) async throws -> Store {
    let base = try await JSONFileStore<Int>(path: "/base.json", codec: .json(), fileSystem: disk)
    let cache = try await JSONFileStore<[UInt8]>(
      path: "/cache.json", codec: .json(), durability: durability, fileSystem: disk)
    return try base.cached(
      in: cache, codec: .json(Int.self), configuration: TieredStoreConfiguration(negativeTimeToLive: .seconds(3600)))
  }

  private static func perform(_ write: Write, on store: Store) async throws {
    switch write {
    case .set: try await store.setValue(2, forKey: "a")
    case .insert: try await store.setValue(2, forKey: "missing")
    case .remove: try await store.removeValue(forKey: "a")
    case .update: try await store.update(["a", "missing"]) { slots in slots.assign([nil, 2]) }
    case .batch: try await store.apply([.set("missing", 2), .remove("b"), .set("a", 3)])
    case .removeRange: try await store.removeAll(in: "a"..."b")
    case .removeAll: try await store.removeAll()
    }
  }

  /// Crashes at an operation of the disk during a write.
  ///
  /// - Returns: A Boolean value that indicates whether the write had so many operations.
  private static func crash(
    _ crash: Crash, atOperation number: Int, of write: Write, _ durability: Durability.File, seed: UInt64
  ) async throws -> Bool {
    let disk = SimulatedFileSystem(seed: seed)
    var store = try await open(disk, durability)
    try await store.apply([.set("a", 1), .set("b", 1)])
    for key in keys { _ = try await store.value(forKey: key) }
    // The copy of the key that is missing is written beside the read.
    while try store.cache.count(in: .all) < keys.count { await Task.yield() }
    try await store.cache.synchronize()
    let start = disk.operationCount
    switch crash {
    case .powerLoss: disk.schedule(.powerLoss, atOperation: start + number)
    // A dead process performs no further operation.
    case .kill: for later in number..<number + 500 { disk.schedule(.error(EIO), atOperation: start + later) }
    }
    var isComplete = false
    do {
      try await perform(write, on: store)
      isComplete = true
    } catch {}
    let isReached = disk.operationCount >= start + number
    disk.clearFaults()
    switch crash {
    case .powerLoss where !disk.hasPower: disk.restart()
    case .powerLoss, .kill: disk.killProcess()
    }
    store = try await open(disk, durability)
    let comment: Comment =
      "\(write), \(crash) at operation \(number), \(durability), complete: \(isComplete), seed \(seed)"
    for key in keys {
      let stored = try store.base.value(forKey: key)
      #expect(try await store.value(forKey: key) == stored, comment)
    }
    return isReached
  }

  @Test(arguments: Write.allCases, Durability.File.allCases) func `nothing stale is served after a crash`(
    _ write: Write, _ durability: Durability.File
  ) async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "TieredStoreCrashTests")
    for crash in Crash.allCases {
      var number = 1
      while try await Self.crash(crash, atOperation: number, of: write, durability, seed: generator.next()) {
        number += 1
      }
      // The removal from the cache, its synchronization, and the write of the base.
      #expect(number > 4, "\(write)")
    }
  }

  // MARK: Other writers of the base

  /// Two processes with a cache each, over a base that both write.
  @Test func `a write of another process is seen when the copies are too old`() async throws {
    let memory = MemoryStore<Int>()
    let shared = ProbedStore(
      base: memory, information: StoreInformation(name: "shared", durability: .synced, sharing: .betweenHosts)
    ).hidingCapabilities
    let clock = TieredStoreTests.SettableClock()
    let configuration = TieredStoreConfiguration(timeToLive: .seconds(60), negativeTimeToLive: .seconds(30))
    func open() throws -> TieredStore<HidingStore<ProbedStore<Int>>, MemoryStore<[UInt8]>> {
      try shared.cached(in: MemoryStore<[UInt8]>(), codec: .json(Int.self), configuration: configuration) {
        clock.date
      }
    }
    let (first, second) = (try open(), try open())
    try await first.apply([.set("a", 1), .set("b", 1), .set("c", 1)])
    #expect(try await first.value(forKey: "missing") == nil)
    while try first.cache.count(in: .all) < 4 { await Task.yield() }
    try await second.apply([.set("a", 2), .remove("b"), .set("c", 2), .set("missing", 2)])
    // A write through the cache, an invalidation and a reload see it immediately.
    try await first.update("c") { $0 = $0.map { $0 + 1 } }
    #expect(try await first.value(forKey: "c") == 3)
    #expect(try await first.values(forKeys: ["a", "b", "missing"]) == [1, 1, nil])
    clock.pass(31)
    #expect(try await first.value(forKey: "missing") == 2)
    #expect(try await first.values(forKeys: ["a", "b"]) == [1, 1])
    try await first.invalidate("a")
    #expect(try await first.value(forKey: "a") == 2)
    #expect(try await first.value(forKey: "b", policy: .reload) == nil)
    #expect(try await first.value(forKey: "b") == nil)
    try await second.setValue(4, forKey: "c")
    #expect(try await first.value(forKey: "c") == 3)
    clock.pass(30)
    #expect(try await first.value(forKey: "c") == 4)
  }

  /// The age of a copy counts from the beginning of its load, because the base may have changed since.
  @Test func `a copy is as old as the beginning of its load`() async throws {
    let memory = MemoryStore<Int>()
    try memory.apply([.set("a", 1)])
    let base = ProbedStore(
      base: memory, information: StoreInformation(name: "shared", durability: .synced, sharing: .betweenHosts)
    ).hidingCapabilities.faulty()
    let clock = TieredStoreTests.SettableClock()
    let disk = MemoryStore<[UInt8]>()
    let store = try base.cached(
      in: disk, codec: .json(Int.self), configuration: TieredStoreConfiguration(timeToLive: .seconds(60))
    ) { clock.date }
    base.schedule(.suspension(.after), on: .value)
    let read = Task { try await store.value(forKey: "a") }
    try await base.waitForSuspended(of: .value)
    try memory.apply([.set("a", 2)])
    clock.pass(50)
    base.resume()
    #expect(try await read.value == 1)
    while try disk.count(in: .all) == 0 { await Task.yield() }
    #expect(try await store.value(forKey: "a") == 1)
    clock.pass(11)
    #expect(try await store.value(forKey: "a") == 2)
  }
}

/// A store without the capabilities of the one inside.
private struct HidingStore<Base: DataStore>: PassingStore {
  let base: Base
}

extension ProbedStore {
  fileprivate var hidingCapabilities: HidingStore<ProbedStore<Value>> { HidingStore(base: self) }
}
