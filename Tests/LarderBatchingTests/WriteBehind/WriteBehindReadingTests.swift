import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBatching

@Suite(.timeLimit(.minutes(60))) struct WriteBehindReadingTests: WriteBehindSuite {
  let clock = ManualClock()
  let base = PickyStore<Int>().faulty()

  @Test func `every operation sees accepted writes`() async throws {
    try picky.apply([.set("a", 0), .set("b", 0), .set("c", 0), .set("f", 0)])
    let changes: ChangeBatch<Int> = [.set("a", 1), .remove("b"), .set("d", 1)]
    let keys: [StoreKey] = ["a", "c", "d", "f"]
    for range in [KeyRange.all, "a"..<"e", "b"..."d", "c"..., "x"...] {
      for limit in [0, 1, 2, 3, 10, Int.max] {
        let store = store()
        let inside = keys.filter(range.contains)
        try await store.apply(changes)
        #expect(try await store.keys(in: range, limit: limit, order: .ascending) == Array(inside.prefix(limit)))
        try await store.apply(changes)
        let entries = try await store.entries(in: range, limit: limit, order: .descending)
        #expect(entries.map(\.key) == Array(inside.reversed().prefix(limit)))
        #expect(entries.allSatisfy { $0.value == (["a", "d"].contains($0.key) ? 1 : 0) })
        try await store.apply(changes)
        #expect(try await store.count(in: range) == inside.count)
        try await store.flush()
      }
    }
  }

  @Test func `only reads that need the base and pending changes flush`() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0), .set("c", 0), .set("f", 0)])
    try await store.apply([.set("a", 1), .remove("b"), .set("d", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.value(forKey: "b") == nil)
    #expect(try await store.value(forKey: "c") == 0)
    #expect(try await store.contains("a"))
    #expect(try await !store.contains("b"))
    #expect(try await store.keys(in: .only("a"), limit: 0, order: .ascending) == [])
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, nil])
    #expect(try await store.values(forKeys: ["c"]) == [0])
    #expect(try await store.keys(in: "e"..., limit: 9, order: .ascending) == ["f"])
    #expect(try await store.count(in: "e"...) == 1)
    #expect(picky.attempts == 1)
    #expect(try await store.values(forKeys: ["d", "b", "c", "a"]) == [1, nil, 0, 1])
    #expect(picky.attempts == 2)
    try await store.setValue(2, forKey: "a")
    #expect(try await store.count() == 4)
    #expect(picky.attempts == 3)
  }

  /// Suspends a scan in the base, calls a closure, and then continues the scan.
  private func duringScan(
    _ store: WriteBehindStore<FaultyStore<PickyStore<Int>>>, _ body: () async throws -> Void
  ) async throws -> [StoreKey: Int] {
    base.schedule(.suspension(), on: .entries)
    let reading = Task { try await store.entries(in: .all, limit: .max, order: .ascending) }
    try await base.waitForSuspended(of: .entries)
    base.clearFaults()
    try await body()
    base.resume(.entries)
    return Dictionary(uniqueKeysWithValues: try await reading.value.map { ($0.key, $0.value) })
  }

  @Test func `a scan delays no writers`() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0), .set("c", 0)])
    try await store.setValue(1, forKey: "a")
    let scans = picky.scanCount
    let found = try await duringScan(store) {
      for round in 2...9 {
        try await store.apply([.set("a", round), .set("b", round), .remove("c")])
        try await store.flush()
      }
      try await store.update(["b"]) { $0.assign([10]) }
      // This write is accepted, but later than the moment that the scan shows.
      try await store.setValue(11, forKey: "a")
    }
    #expect(found == ["a": 9, "b": 10])
    #expect(picky.scanCount == scans + 1)
  }

  @Test func `a scan sees no changes that are abandoned during it`() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0)])
    picky.refuse(.encodingFailed) { $0 < 0 }
    try await store.setValue(1, forKey: "a")
    let found = try await duringScan(store) {
      try await store.setValue(-1, forKey: "b")
      await expectStoreError(.encodingFailed) { try await store.flush() }
    }
    #expect(found == ["a": 1, "b": 0])
  }

  /// If a scan shows the later of two accepted writes, it also shows the earlier one.
  @Test func `a scan during a partial flush sees writes in order`() async throws {
    let store = store()
    picky.refuse(.encodingFailed) { $0 < 0 }
    var flushing: Task<Void, any Error>?
    let found = try await duringScan(store) {
      try await store.setValue(1, forKey: "b")
      try await store.setValue(-1, forKey: "z")
      try await store.setValue(1, forKey: "a")
      base.schedule(.suspension(), on: .apply, number: 3)
      flushing = Task { try await store.flush() }
      try await base.waitForSuspended(of: .apply)
    }
    #expect(found == ["b": 1])
    base.resume(.apply)
    await expectStoreError(.encodingFailed) { try await flushing?.value }
    #expect(try contents() == ["a": 1, "b": 1])
  }

  /// Writers are accepted while a read waits for a flush, and the read does not wait for them.
  @Test func `a read waits only for earlier writes`() async throws {
    let store = store()
    base.schedule(.suspension(), on: .apply)
    try await store.setValue(1, forKey: "a")
    let reading = Task { try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended(of: .apply)
    try await store.setValue(2, forKey: "a")
    base.clearFaults()
    base.resume(.apply)
    let seen = try await reading.value
    #expect(seen == [1, nil] || seen == [2, nil])
    #expect(try await store.value(forKey: "a") == 2)
  }
}
