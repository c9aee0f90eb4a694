#if Compression && LMDB && SQLite
import Foundation
import Larder
import LarderBounded
import LarderJSON
import LarderTesting
import TestSupport
import Testing

/// Random writes under a limit, after which the accounting and the entries agree.
@Suite(.timeLimit(.minutes(60))) struct BoundedHistoryTests {
  /// A store as it should be: its entries in the order of use.
  private struct Model {
    let byteLimit: Int
    let shareLimit: Int
    let entryLimit: Int
    var entries: [(key: StoreKey, value: [UInt8])] = []

    func value(_ key: StoreKey) -> [UInt8]? { entries.first { $0.key == key }?.value }

    mutating func use(_ key: StoreKey) {
      guard let index = entries.firstIndex(where: { $0.key == key }) else { return }
      entries.append(entries.remove(at: index))
    }

    /// Applies the final values of keys, or returns `false` if they do not fit.
    mutating func set(_ news: [StoreKey: [UInt8]?]) -> Bool {
      var after = entries.filter { news[$0.key] == nil }
      let stored = news.keys.sorted().compactMap { key in
        (news[key] ?? nil).flatMap { key.count + $0.count <= shareLimit ? (key: key, value: $0) : nil }
      }
      func bytes(_ entries: [(key: StoreKey, value: [UInt8])]) -> Int {
        entries.reduce(0) { $0 + $1.key.count + $1.value.count }
      }
      guard bytes(stored) <= byteLimit, stored.count <= entryLimit else { return false }
      while bytes(after) + bytes(stored) > byteLimit || after.count + stored.count > entryLimit { after.removeFirst() }
      entries = after + stored
      return true
    }
  }

  @Test func `random histories agree with a model`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "bounded histories")
    for round in 0..<ConformanceSuite.roundsOfProcess * 10 {
      var configuration = BoundedStoreConfiguration()
      configuration.maximumShare = 0.5
      configuration.useInterval = .zero
      var model = Model(byteLimit: 100, shareLimit: 50, entryLimit: round.isMultiple(of: 2) ? 5 : 1000)
      let store = try await MemoryStore<[UInt8]>().bounded(
        bytes: 100, entries: model.entryLimit, configuration: configuration)
      for step in 0..<60 {
        let comment: Comment = "seed \(seed), round \(round), step \(step)"
        let batch = Self.batch(using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          let key = StoreKey("k\(Int.random(in: 0..<12, using: &generator))")
          #expect(try await store.value(forKey: key) == model.value(key), comment)
          // The use counts at its place in the order from now on.
          try await store.synchronize()
          model.use(key)
        case 1 where batch.changes.allSatisfy { $0.key != nil }:
          let news = Self.finalValues(batch, model.entries.map(\.key))
          let keys = news.keys.sorted()
          // An unchanged entry is not used.
          let changed = news.filter { model.value($0.key) != $0.value }
          let fixed = model.entries.filter { news[$0.key] != nil && changed[$0.key] == nil }
          guard fixed.isEmpty else { continue }
          try await Self.expect(model.set(changed), comment) {
            try await store.update(keys) { slots in slots.assign(keys.map { news[$0] ?? nil }) }
          }
        default:
          try await Self.expect(model.set(Self.finalValues(batch, model.entries.map(\.key))), comment) {
            try await store.apply(batch)
          }
        }
        let entries = try await store.entries(in: .all, limit: .max)
        #expect(
          Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
            == Dictionary(uniqueKeysWithValues: model.entries.map { ($0.key, $0.value) }), comment)
      }
      try await store.expectConsistent("seed \(seed), round \(round)")
    }
  }

  private static func expect(_ fits: Bool, _ comment: Comment, _ body: () async throws -> Void) async throws {
    do {
      try await body()
      #expect(fits, comment)
    } catch StoreError.Code.full {
      #expect(!fits, comment)
    }
  }

  static func batch(using generator: inout SeededGenerator) -> ChangeBatch<[UInt8]> {
    var batch = ChangeBatch<[UInt8]>()
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let number = Int.random(in: 0..<12, using: &generator)
      switch Int.random(in: 0..<24, using: &generator) {
      case 0: batch.removeAll(in: "k\(number)"..<"k\(number + 3)")
      case 1: batch.removeAll()
      case 2...4: batch.removeValue(forKey: "k\(number)")
      default:
        let count = Int.random(in: 0..<60, using: &generator)
        batch.setValue([UInt8](repeating: .random(in: 0...255, using: &generator), count: count), forKey: "k\(number)")
      }
    }
    return batch
  }

  private static func finalValues(_ batch: ChangeBatch<[UInt8]>, _ existing: [StoreKey]) -> [StoreKey: [UInt8]?] {
    var values: [StoreKey: [UInt8]?] = [:]
    for change in batch.changes {
      switch change {
      case .set(let key, let value): values[key] = .some(value)
      case .remove(let key): values[key] = .some(nil)
      case .removeAll(let range):
        for key in existing + values.keys where range.contains(key) { values[key] = .some(nil) }
      }
    }
    return values
  }

  /// Two objects over one base, as in two processes, with writes that overlap and fail.
  @Test func `concurrent writers of two programs keep the limit`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "concurrent bounded writers")
    let faults: [(StoreFault, StoreOperation?, Double)] = [
      (.yields(upTo: 3), nil, 1), (.error(.ioFailed), .update, 0.05), (.error(.ioFailed, .after), .update, 0.05),
      (.error(.full), .values, 0.02),
    ]
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 0.5
    configuration.useInterval = .zero
    for round in 0..<ConformanceSuite.roundsOfProcess * 3 {
      let memory = MemoryStore<[UInt8]>()
      let base = memory.faulty()
      let programs = [
        try await base.bounded(bytes: 100, configuration: configuration),
        try await base.bounded(bytes: 100, configuration: configuration),
      ]
      for (fault, operation, probability) in faults { base.schedule(fault, on: operation, probability: probability) }
      let seeds = (0..<6).map { _ in generator.next() }
      await withTaskGroup(of: Void.self) { group in
        for (task, seed) in seeds.enumerated() {
          group.addTask {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<15 {
              let batch = BoundedHistoryTests.batch(using: &generator)
              do {
                if Bool.random(using: &generator) { _ = try await programs[task % 2].value(forKey: "k3") }
                try await programs[task % 2].apply(batch)
              } catch {
                let code = (error as? StoreError)?.code
                #expect([.ioFailed, .full].contains(code), "\(error)")
              }
            }
          }
        }
      }
      base.clearFaults()
      for program in programs { try await program.synchronize() }
      let store = try await memory.bounded(bytes: 100, configuration: configuration)
      #expect(store.statistics().evictedCount == 0)
      try await store.expectConsistent("seed \(seed), round \(round)")
    }
  }

  /// Concurrent histories on two objects with a limit that never strikes have an explanation as a sequence of writes.
  @Test func `two programs are one store`() async throws {
    let trial = HistoryTrial("two BoundedStores over one base", lacking: .persistence) { _ in
      var plan = FaultPlan()
      plan.schedule(.yields(upTo: 2), probability: 1)
      return try await TwoPrograms(MemoryStore<[UInt8]>().faulty(plan: plan))
    }
    try await trial.runConcurrently(
      rounds: ConformanceSuite.roundsOfProcess * 5, seed: SeededGenerator.seedOfProcess, tasks: 4)
  }

  /// A key that another program inserts while a range is being removed does not remain in the range.
  @Test(arguments: [false, true]) func `an insertion into a removed range is not missed`(_ removesAllBefore: Bool)
    async throws
  {
    let memory = MemoryStore<[UInt8]>()
    let base = memory.faulty()
    let (first, second) = (try await base.bounded(bytes: 1000), try await memory.bounded(bytes: 1000))
    for key in ["a1", "b1", "b2"] { try await first.setValue([1], forKey: StoreKey(key)) }
    base.schedule(.suspension(), on: .update)
    let removal = Task { try await first.removeAll(in: .prefix("b")) }
    try await base.waitForSuspended(1, of: .update)
    if removesAllBefore { try await second.removeAll() }
    try await second.setValue([2], forKey: "b3")
    base.resume()
    try await removal.value
    #expect(try await second.allKeys == (removesAllBefore ? [] : ["a1"]))
    try await second.expectConsistent()
  }

  // MARK: Hit ratio

  /// The hit ratio is near that of a list in the order of use, also if the process is killed in the middle.
  @Test(arguments: [false, true]) func `the hit ratio is near that of LRU`(_ isKilled: Bool) async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "hit ratio of bounded stores")
    let clock = WallClock()
    var configuration = BoundedStoreConfiguration()
    configuration.now = { Date(timeIntervalSince1970: clock.seconds) }
    let base = MemoryStore<[UInt8]>()
    let (entryLimit, requestCount) = (200, 6000)
    var store = try await base.bounded(bytes: .max, entries: entryLimit, configuration: configuration)
    var model = Model(byteLimit: .max, shareLimit: .max, entryLimit: entryLimit)
    var (hits, modelHits) = (0, 0)
    for request in 0..<requestCount {
      if request == requestCount / 2 {
        if !isKilled { try await store.synchronize() }
        store = try await base.bounded(bytes: .max, entries: entryLimit, configuration: configuration)
      }
      clock.seconds += 0.05
      // Few keys get most of the requests.
      let key = StoreKey(integer: Int(pow(2000, Double.random(in: 0..<1, using: &generator))))
      if try await store.value(forKey: key) == nil { try await store.setValue([1], forKey: key) } else { hits += 1 }
      if model.value(key) == nil { _ = model.set([key: [1]]) } else { modelHits += 1 }
      model.use(key)
    }
    let difference = Double(modelHits - hits) / Double(requestCount)
    #expect(abs(difference) < 0.03, "seed \(seed), \(hits) hits beside \(modelHits)")
    #expect(modelHits > requestCount / 4 && modelHits < requestCount * 9 / 10, "seed \(seed), \(modelHits) hits")
    try await store.expectConsistent()
  }

  // MARK: Power cuts

  /// A disk that loses power at any operation of a writer.
  ///
  /// Entries of equal size are evicted in the order of their keys, so the remaining ones must be neighbors.
  @Test func `power cuts lose nothing that was not evicted`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "power cuts of bounded stores")
    var cuts = 0
    for number in 1...ConformanceSuite.roundsOfProcess * 40 {
      let disk = SimulatedFileSystem(seed: generator.next())
      let acknowledged = Locked(-1)
      disk.schedule(.powerLoss, atOperation: Int.random(in: 10...200, using: &generator))
      do {
        let store = try await Self.open(disk)
        for key in 0..<60 {
          try await store.setValue([UInt8](repeating: UInt8(key), count: 12), forKey: StoreKey(integer: key))
          acknowledged.withLock { $0 = key }
        }
      } catch is StoreError {
        cuts += 1
      }
      if !disk.hasPower { disk.restart() } else { disk.losePower() }
      disk.clearFaults()
      let comment: Comment = "seed \(seed), cut \(number)"
      let store = try await Self.open(disk)
      try await store.expectConsistent(comment)
      let last = acknowledged.withLock { $0 }
      try await Self.expectNeighbors(store, last: last, comment)
      try await store.close()
    }
    #expect(cuts > 0)
  }

  private static func open(_ disk: SimulatedFileSystem) async throws -> BoundedStore<JSONFileStore<[UInt8]>> {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 1
    return try await JSONFileStore(path: "/store.json", codec: .json([UInt8].self), fileSystem: disk)
      .bounded(bytes: 200, configuration: configuration)
  }

  /// Expects that a store of 10 entries contains the last ones that were written.
  static func expectNeighbors(
    _ store: BoundedStore<some DataStore<[UInt8]>>, last: Int, _ comment: Comment
  ) async throws {
    let keys = try await store.allKeys
    // The write that was interrupted may have been committed.
    let found = try #require(
      [last, last + 1].first { keys == (max(0, $0 - 9)..<($0 + 1)).map { StoreKey(integer: $0) } }, comment)
    for number in max(0, found - 9)..<(found + 1) {
      #expect(try await store.value(forKey: StoreKey(integer: number))?.first == UInt8(number % 256), comment)
    }
  }
}

/// A store that passes its calls to two bounded stores over one base, in turn.
private final class TwoPrograms<Base: DataStore>: DataStore where Base.Value == [UInt8] {
  private let programs: [TypedView<BoundedStore<Base>, Int>]
  private let calls = Locked(0)

  init(_ base: Base) async throws {
    var configuration = BoundedStoreConfiguration()
    configuration.useInterval = .zero
    programs = [
      try await base.bounded(bytes: 100_000, configuration: configuration).typed(Int.self, codec: .json()),
      try await base.bounded(bytes: 100_000, configuration: configuration).typed(Int.self, codec: .json()),
    ]
  }

  private var program: TypedView<BoundedStore<Base>, Int> {
    programs[
      calls.withLock { calls in
        calls += 1
        return calls % 2
      }]
  }

  var information: StoreInformation { programs[0].information }

  func value(forKey key: StoreKey) async throws -> Int? { try await program.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) async throws -> [Int?] { try await program.values(forKeys: keys) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try await program.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await program.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) async throws -> Int { try await program.count(in: range) }
  func apply(_ changes: ChangeBatch<Int>) async throws { try await program.apply(changes) }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result { try await program.update(deciding: keys, body) }
  func synchronize() async throws { try await program.synchronize() }
  func close() async throws {
    // A use may be persisted in the background while the first object verifies.
    for program in programs { try await program.base.synchronize() }
    try await programs[0].base.expectConsistent()
    for program in programs { try await program.close() }
  }
}
#endif
