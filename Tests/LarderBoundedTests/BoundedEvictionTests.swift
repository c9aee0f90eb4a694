#if Compression && LMDB && SQLite
import Foundation
import Larder
import LarderBounded
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// Many evictions, which are divided into several commits and calls.
@Suite struct BoundedEvictionTests {
  private let log = EvictionLog()

  private var configuration: BoundedStoreConfiguration {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 1
    configuration.onEviction = { [log] in log.add($0) }
    return configuration
  }

  /// The number of evictions in a commit, which the guide states.
  private let step = 512

  /// Fills a store with entries of 10 bytes.
  private func fill(_ store: some DataStore<[UInt8]>, _ count: Int) async throws {
    try await store.apply(ChangeBatch((0..<count).map { .set(StoreKey(integer: $0), [1, 2]) }))
  }

  /// The greatest number of entries that an event removes or sets.
  private func largestCommit(_ events: StoreEvents) -> Int {
    events.take().map { if case .changed(let changes) = $0 { changes.count } else { 0 } }.max() ?? 0
  }

  // MARK: A write that needs much room

  @Test(arguments: [1, 511, 512, 513, 1500]) func `a large write evicts in several commits`(_ count: Int) async throws {
    let store = try await MemoryStore<[UInt8]>().observable().bounded(bytes: 20_000, configuration: configuration)
    try await fill(store, 2000)
    let events = StoreEvents()
    let observation = events.observe(store)
    try await store.setValue([UInt8](repeating: 3, count: count * 10 - 1), forKey: "x")
    let commits = events.take()
    #expect(commits.count == (count - 1) / step + 1)
    for case .changed(let changes) in commits { #expect(changes.count <= step + 1) }
    // The least recently used ones, in their order.
    #expect(log.take().map(\.key) == (0..<count).map { StoreKey(integer: $0) })
    #expect(store.statistics().evictedCount == count)
    #expect(try await store.usage() == BoundedUsage(bytes: 20_000, entries: 2001 - count))
    try await store.expectConsistent()
    observation.cancel()
  }

  /// The evictions that were committed are reported, and the accounting agrees.
  @Test(arguments: 1...3) func `a large write that fails leaves the evictions`(_ number: Int) async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let store = try await base.bounded(bytes: 20_000, configuration: configuration)
    try await fill(store, 2000)
    base.schedule(.error(.ioFailed), on: .update, number: number)
    await expectStoreError(.ioFailed) { try await store.setValue([UInt8](repeating: 3, count: 12_000), forKey: "x") }
    #expect(try await store.value(forKey: "x") == nil)
    #expect(log.take().count == (number - 1) * step)
    #expect(try await store.usage().entries == 2000 - (number - 1) * step)
    try await store.expectConsistent()
    try await store.setValue([UInt8](repeating: 3, count: 12_000), forKey: "x")
    try await store.expectConsistent()
  }

  /// Another program removes one of the entries that the first commit evicts, so that this commit is planned again.
  @Test func `evictions that were not committed are not reported`() async throws {
    let memory = MemoryStore<[UInt8]>()
    let base = memory.faulty()
    let store = try await base.bounded(bytes: 20_000, configuration: configuration)
    try await fill(store, 2000)
    let other = try await memory.bounded(bytes: 20_000)
    base.schedule(.suspension(), on: .update, number: 1)
    let write = Task { try await store.setValue([UInt8](repeating: 3, count: 12_000), forKey: "x") }
    try await base.waitForSuspended(1, of: .update)
    try await other.removeValue(forKey: StoreKey(integer: 0))
    base.resume()
    try await write.value
    let evicted = log.take().map(\.key)
    #expect(Set(evicted).count == evicted.count)
    #expect(!evicted.contains(StoreKey(integer: 0)))
    try await store.expectConsistent()
  }

  /// The entries of an update are not evicted for it, also not in a commit before it.
  @Test func `an update keeps its entries`() async throws {
    let store = try await MemoryStore<[UInt8]>().bounded(bytes: 20_000, configuration: configuration)
    try await fill(store, 2000)
    let large = [UInt8](repeating: 3, count: 12_000)
    try await store.update([StoreKey(integer: 0), StoreKey(integer: 700), "x"]) { slots in
      #expect(slots[0] != nil && slots[1] != nil)
      slots[1] = [5]
      slots[2] = large
    }
    #expect(try await store.values(forKeys: [StoreKey(integer: 0), StoreKey(integer: 700)]) == [[1, 2], [5]])
    #expect(try await store.usage().bytes <= 20_000)
    try await store.expectConsistent()
  }

  /// A read between two commits finds the store within the limit.
  @Test func `reads dont wait for many evictions`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let store = try await base.bounded(bytes: 20_000, configuration: configuration)
    try await fill(store, 2000)
    base.schedule(.suspension(), on: .update, number: 2)
    let write = Task { try await store.setValue([UInt8](repeating: 3, count: 12_000), forKey: "x") }
    try await base.waitForSuspended(1, of: .update)
    #expect(try await store.value(forKey: StoreKey(integer: 0)) == nil)
    #expect(try await store.value(forKey: StoreKey(integer: 1999)) == [1, 2])
    #expect(try await store.usage() == BoundedUsage(bytes: 20_000 - step * 10, entries: 2000 - step))
    base.resume()
    try await write.value
    try await store.expectConsistent()
  }

  @Test func `two programs make room at the same time`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "two programs that make room")
    for round in 0..<ConformanceSuite.roundsOfProcess {
      let memory = MemoryStore<[UInt8]>()
      let base = memory.faulty()
      let programs = [
        try await base.bounded(bytes: 20_000, configuration: configuration),
        try await base.bounded(bytes: 20_000, configuration: configuration),
      ]
      try await fill(programs[0], 2000)
      base.schedule(.yields(upTo: 3), probability: 1)
      let sizes = (0..<8).map { _ in Int.random(in: 1...9000, using: &generator) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, size) in sizes.enumerated() {
          group.addTask {
            let value = [UInt8](repeating: 1, count: size)
            try await programs[number % 2].setValue(value, forKey: StoreKey("x\(number)"))
            #expect(try await programs[number % 2].usage().bytes <= 20_000)
          }
        }
        try await group.waitForAll()
      }
      base.clearFaults()
      try await programs[1].expectConsistent("seed \(seed), round \(round)")
    }
  }

  /// Each of the two entries fits beside those that its program has read.
  @Test(arguments: [(30, nil), (.max, 3)] as [(Int, Int?)])
  func `two programs dont exceed the limit together`(_ bytes: Int, _ entries: Int?) async throws {
    let memory = MemoryStore<[UInt8]>()
    let base = memory.faulty()
    let first = try await base.bounded(bytes: bytes, entries: entries, configuration: configuration)
    let second = try await memory.bounded(bytes: bytes, entries: entries, configuration: configuration)
    try await fill(first, 2)
    base.schedule(.suspension(), on: .update)
    let write = Task { try await first.setValue([1, 2], forKey: StoreKey(integer: 2)) }
    try await base.waitForSuspended(1, of: .update)
    try await second.setValue([1, 2], forKey: StoreKey(integer: 3))
    base.resume()
    try await write.value
    #expect(try await second.allKeys == (1...3).map { StoreKey(integer: $0) })
    try await second.expectConsistent()
  }

  // MARK: A smaller limit

  @Test func `a smaller limit is reached in steps`() async throws {
    let base = MemoryStore<[UInt8]>().observable()
    let first = try await base.bounded(bytes: .max, configuration: configuration)
    try await fill(first, 2000)
    let second = try await base.bounded(bytes: 100, configuration: configuration)
    #expect(try await second.usage().entries == 2000 - step)
    let events = StoreEvents()
    let observation = events.observe(base)
    for number in 1...2 {
      try await second.setValue([3, 4], forKey: StoreKey(integer: 2000 + number))
      #expect(try await second.usage().entries == 2000 - (number + 1) * step + number)
    }
    // A removal is a write, too.
    try await second.removeValue(forKey: StoreKey(integer: 1999))
    // Each eviction removes a value and its record, and each record of the order has up to 16 of them.
    #expect(largestCommit(events) <= 2 * step + step / 16 + 10)
    #expect(second.statistics().evictedCount == 1991)
    #expect(try await second.usage() == BoundedUsage(bytes: 100, entries: 10))
    #expect(
      try await second.allKeys == ((1991..<1999).map { $0 } + [2001, 2002]).map { StoreKey(integer: $0) })
    try await second.expectConsistent()
    observation.cancel()
  }

  @Test func `a repair reaches a smaller limit`() async throws {
    let base = MemoryStore<[UInt8]>()
    let first = try await base.bounded(bytes: .max, configuration: configuration)
    try await fill(first, 2000)
    let second = try await base.bounded(bytes: 100, entries: 7, configuration: configuration)
    try await second.repairAccounting()
    #expect(try await second.allKeys == (1993..<2000).map { StoreKey(integer: $0) })
    try await second.expectConsistent()
  }

  /// A batch with more entries than a commit evicts does not wait until the limit is reached.
  @Test func `a large batch beyond a smaller limit`() async throws {
    let base = MemoryStore<[UInt8]>()
    let first = try await base.bounded(bytes: .max, configuration: configuration)
    try await fill(first, 6000)
    let second = try await base.bounded(bytes: 10_000, configuration: configuration)
    try await second.apply(ChangeBatch((0..<700).map { .set(StoreKey(integer: 6000 + $0), [1, 2]) }))
    #expect(try await second.usage().entries == 6000 - step)
    #expect(second.statistics().evictedCount == step + 700)
    // Together they would exceed the limit.
    await expectStoreError(.full) {
      try await second.apply(ChangeBatch((0..<1001).map { .set(StoreKey(integer: 9000 + $0), [1, 2]) }))
    }
    // Entries that become smaller are written, although together they have more than the limit.
    try await second.apply(ChangeBatch((1500..<3000).map { .set(StoreKey(integer: $0), [1]) }))
    #expect(try await second.usage().entries == 6000 - 2 * step)
    // So are entries of the same size.
    try await second.apply(ChangeBatch((4000..<5500).map { .set(StoreKey(integer: $0), [3, 4]) }))
    #expect(try await second.value(forKey: StoreKey(integer: 4000)) == [3, 4])
  }

  /// No write of two programs leaves more than it found, and the limit is reached.
  @Test func `random writes reach a smaller limit`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "a smaller limit of bounded stores")
    for round in 0..<ConformanceSuite.roundsOfProcess {
      let base = MemoryStore<[UInt8]>()
      let first = try await base.bounded(bytes: .max, configuration: configuration)
      let count = Int.random(in: 600...4000, using: &generator)
      try await fill(first, count)
      let (bytes, entries) = (Int.random(in: 100...2000, using: &generator), Int.random(in: 5...200, using: &generator))
      let programs = [
        try await base.bounded(bytes: bytes, entries: entries, configuration: configuration),
        try await base.bounded(bytes: bytes, entries: entries, configuration: configuration),
      ]
      var usage = try await first.usage()
      var isOver = true
      for step in 0..<60 {
        let comment: Comment = "seed \(seed), round \(round), step \(step)"
        let program = try #require(programs.randomElement(using: &generator))
        let before = program.statistics().evictedCount
        do {
          if Bool.random(using: &generator) {
            let key = StoreKey(integer: Int.random(in: 0..<count, using: &generator))
            let value = [UInt8](repeating: 3, count: Int.random(in: 0..<50, using: &generator))
            try await program.update([key]) { $0[0] = value }
          } else {
            var batch = BoundedHistoryTests.batch(using: &generator)
            batch.removeValue(forKey: StoreKey(integer: Int.random(in: 0..<count, using: &generator)))
            try await program.apply(batch)
          }
        } catch StoreError.Code.full {
          // The batch does not fit.
        }
        let now = try await program.usage()
        #expect(now.bytes <= max(bytes, usage.bytes) && now.entries <= max(entries, usage.entries), comment)
        #expect(program.statistics().evictedCount - before <= self.step, comment)
        (usage, isOver) = (now, now.bytes > bytes || now.entries > entries)
      }
      #expect(!isOver, "seed \(seed), round \(round)")
      try await programs[0].expectConsistent("seed \(seed), round \(round)")
    }
  }

  /// Neither opening nor a write waits for thousands of evictions.
  @Test func `a much smaller limit holds no call`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let base = try await LMDBStore(in: environment, codec: .raw)
    let first = try await base.bounded(bytes: .max, configuration: configuration)
    try await fill(first, 10_000)
    let second = try await LMDBStore(in: environment, codec: .raw).bounded(bytes: 1000, configuration: configuration)
    var entries = try await second.usage().entries
    #expect(entries == 10_000 - step)
    while entries > 100 {
      try await second.setValue([3, 4], forKey: "x")
      let now = try await second.usage().entries
      #expect(now < entries && now >= entries - step)
      entries = now
    }
    #expect(try await second.value(forKey: "x") == [3, 4])
    try await second.expectConsistent()
    try await environment.close()
  }
}
#endif
