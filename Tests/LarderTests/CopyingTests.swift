import Larder
import LarderTesting
import TestSupport
import Testing

/// Copies between stores, and comparisons of them.
@Suite struct CopyingTests {
  let source = MemoryStore<Int>()
  let destination = MemoryStore<Int>()

  private func all(_ store: MemoryStore<Int>) throws -> [StoreKey: Int] {
    let entries = try store.entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }

  @Test func `copies batch by batch`() async throws {
    try source.apply(ChangeBatch((1...5).map { .set(StoreKey("k\($0)"), $0) }))
    try destination.apply([.set("k2", 2), .set("k3", 0), .set("x", 9)])
    var seen: [Int] = []
    let outcome = try await source.copy(to: destination, batchSize: 2) { seen.append($0.copiedCount + $0.equalCount) }
    #expect(outcome.copiedCount == 4 && outcome.equalCount == 1)
    #expect(seen == [2, 4, 5])
    #expect(try all(destination) == ["k1": 1, "k2": 2, "k3": 3, "k4": 4, "k5": 5, "x": 9])
    #expect(try await source.copy(to: destination).equalCount == 5)
  }

  @Test func `continues after a cursor`() async throws {
    struct Stop: Error {}
    try source.apply(ChangeBatch((1...5).map { .set(StoreKey("k\($0)"), $0) }))
    var cursor: PageCursor?
    await #expect(throws: Stop.self) {
      try await source.copy(to: destination, batchSize: 2) { progress in
        cursor = progress.cursor
        if progress.copiedCount == 4 { throw Stop() }
      }
    }
    try destination.apply([.removeAll(.all)])
    let rest = try await source.copy(to: destination, in: .prefix("k"), after: cursor)
    #expect(rest.copiedCount == 1 && rest.cursor != cursor)
    #expect(try all(destination) == ["k5": 5])
    await expectStoreError(.invalidArgument) {
      try await source.copy(to: destination, after: PageCursor(after: "a", order: .descending))
    }
    await expectStoreError(.invalidArgument) { try await source.copy(to: destination, batchSize: 0) }
  }

  @Test func `converts and omits values`() async throws {
    try source.apply(ChangeBatch((1...4).map { .set(StoreKey("k\($0)"), $0) }))
    let texts = MemoryStore<String>()
    let outcome = try await source.copy(to: texts, in: "k2"..<"k9") { $0 == 3 ? nil : "<\($0)>" }
    #expect(outcome.copiedCount == 2)
    #expect(try texts.values(forKeys: ["k1", "k2", "k3", "k4"]) == [nil, "<2>", nil, "<4>"])
  }

  @Test func `a value that does not equal itself is copied`() async throws {
    let (numbers, copies) = (MemoryStore<Double>(), MemoryStore<Double>())
    try numbers.apply([.set("a", .nan), .set("b", 1)])
    #expect(try await numbers.copy(to: copies).copiedCount == 2)
    #expect(try copies.value(forKey: "a")?.isNaN == true)
    #expect(try await numbers.copy(to: copies).copiedCount == 1)
  }

  @Test func `a destination that loses writes is noticed`() async throws {
    let forgetful = WatchedStore(base: destination, forgottenKey: "b")
    try source.apply([.set("a", 1), .set("b", 2)])
    let error = await expectStoreError(.conflict) { try await source.copy(to: forgetful) }
    #expect(error?.key == "b")
  }

  @Test(arguments: [1, 2, 99, 100, 101, 1000]) func `no call is larger than a batch`(batchSize: Int) async throws {
    try source.apply(ChangeBatch((0..<100).map { .set(StoreKey(integer: $0), $0) }))
    let (watched, target) = (WatchedStore(base: source), WatchedStore(base: destination))
    try await watched.copy(to: target, batchSize: batchSize)
    #expect(watched.largestCall.withLock { $0 } <= batchSize && target.largestCall.withLock { $0 } <= batchSize)
    try await watched.forEachDifference(from: target, batchSize: batchSize) { Issue.record("\($0.key) differs") }
    #expect(watched.largestCall.withLock { $0 } <= batchSize && target.largestCall.withLock { $0 } <= batchSize)
    #expect(try all(destination) == all(source))
  }

  @Test func `compares stores of any sizes`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "CopyingTests")
    for round in 0..<200 {
      var expected: [StoreDifference] = []
      let (first, second) = (MemoryStore<Int>(), MemoryStore<Int>())
      for number in 0..<Int.random(in: 0...20, using: &generator) {
        let key = StoreKey(integer: number)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          try first.apply([.set(key, 1)])
          expected.append(StoreDifference(key: key, kind: .onlyInFirst))
        case 1:
          try second.apply([.set(key, 1)])
          expected.append(StoreDifference(key: key, kind: .onlyInSecond))
        case 2:
          try first.apply([.set(key, 1)])
          try second.apply([.set(key, 2)])
          expected.append(StoreDifference(key: key, kind: .value))
        default:
          try first.apply([.set(key, 1)])
          try second.apply([.set(key, 1)])
        }
      }
      var found: [StoreDifference] = []
      let batchSize = Int.random(in: 1...8, using: &generator)
      try await first.forEachDifference(from: second, batchSize: batchSize) { found.append($0) }
      #expect(found == expected, "seed \(SeededGenerator.seedOfProcess), round \(round)")
    }
  }
}

/// A store that notes the largest number of entries in a call, and may not keep a key.
private final class WatchedStore: DataStore {
  let base: MemoryStore<Int>
  let forgottenKey: StoreKey?
  let largestCall = Locked(0)

  init(base: MemoryStore<Int>, forgottenKey: StoreKey? = nil) {
    self.base = base
    self.forgottenKey = forgottenKey
  }

  var information: StoreInformation { base.information }

  private func note(_ count: Int) { largestCall.withLock { $0 = max($0, count) } }

  func value(forKey key: StoreKey) async throws -> Int? { try base.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    note(keys.count)
    return try base.values(forKeys: keys)
  }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    note(limit)
    return try base.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    note(limit)
    return try base.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) async throws -> Int { try base.count(in: range) }
  func apply(_ changes: ChangeBatch<Int>) async throws {
    note(changes.count)
    try base.apply(ChangeBatch(changes.changes.filter { $0.key != forgottenKey }))
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result { try await base.update(deciding: keys, body) }
  func synchronize() async throws { try base.synchronize() }
  func close() async throws { base.close() }
}
