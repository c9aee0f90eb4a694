#if Compression && LMDB && SQLite
import Larder
import Testing

@testable import LarderBounded

/// Commits of two processes that were planned at the same time, without I/O.
@Suite struct BoundedCommitTests {
  private let layout = BoundedLayout(valuePrefix: "v", recordPrefix: "r")
  private let old = EntryRecord(place: 3, microseconds: 0, size: 10)

  /// Returns the totals after a commit that was planned with other totals, or `nil` if it is stale.
  private func totals(after commit: BoundedCommit, from totals: Totals) async throws -> Totals? {
    let store = MemoryStore<[UInt8]>()
    try store.apply([.set(layout.totalsKey, totals.record), .set(layout.entryKey("k"), old.bytes)])
    var commit = commit
    let complete = commit.takeComplete(with: layout, store: "test", for: .update)
    guard try await store.perform(complete).isPerformed else { return nil }
    return try Totals(try store.value(forKey: layout.totalsKey), store: "test", for: .update)
  }

  private func totals(place: UInt64) -> Totals {
    var totals = Totals()
    (totals.bytes, totals.count, totals.place) = (10, 1, place)
    return totals
  }

  /// Otherwise a writer that walks through the order of use could miss the entry, and report damage.
  @Test(arguments: [5, 6, 9]) func `a use changes the place also if others have counted further`(_ place: UInt64)
    async throws
  {
    var commit = BoundedCommit(totals(place: 5))
    commit.use("k", old, at: 1, layout)
    let before = totals(place: place)
    let after = try #require(try await totals(after: commit, from: before))
    #expect(after.place > before.place)
    #expect((after.bytes, after.count) == (before.bytes, before.count))
  }

  @Test func `an entry that has moved makes a commit stale`() async throws {
    var commit = BoundedCommit(totals(place: 5))
    commit.use("k", EntryRecord(place: 2, microseconds: 0, size: 10), at: 1, layout)
    #expect(try await totals(after: commit, from: totals(place: 5)) == nil)
  }

  @Test func `a required value that has changed makes a commit stale`() async throws {
    for value in [nil, [1]] as [[UInt8]?] {
      var commit = BoundedCommit(totals(place: 5))
      commit.require(value, forKey: "other")
      commit.set("k", old, [2], at: 1, layout)
      #expect(try await (totals(after: commit, from: totals(place: 5)) == nil) == (value != nil))
    }
  }

  /// The limit was lowered, and the entry is only replaced.
  @Test func `a commit that adds nothing may exceed its ceiling`() async throws {
    for length in [9, 10] {
      var commit = BoundedCommit(totals(place: 5))
      commit.ceiling = (bytes: 5, entries: 1)
      commit.set("k", old, [UInt8](repeating: 2, count: length), at: 1, layout)
      #expect(try await (totals(after: commit, from: totals(place: 5)) == nil) == (length == 10))
    }
  }

  @Test func `the greatest place is valid`() throws {
    for (place, isValid) in [(Totals.maximumPlace, true), (Totals.maximumPlace + 1, false)] {
      let totals = totals(place: place)
      #expect((try? Totals(totals.record, store: "test", for: .update)) == (isValid ? totals : nil))
      #expect((EntryRecord(EntryRecord(place: place, microseconds: 0, size: 1).bytes) != nil) == isValid)
    }
  }

  /// Their entries share a record of the order of use, which is no reason for a conflict.
  @Test func `two commits with the same place keep both entries`() async throws {
    let store = MemoryStore<[UInt8]>()
    for key in ["a", "b"] {
      var commit = BoundedCommit(Totals())
      commit.set(StoreKey(key), nil, [1], at: 0, layout)
      #expect(try await store.perform(commit.takeComplete(with: layout, store: "test", for: .update)).isPerformed)
    }
    #expect(try store.value(forKey: layout.orderKey(0)).flatMap { OrderRecord($0) } == OrderRecord(["a", "b"]))
    let totals = try Totals(try store.value(forKey: layout.totalsKey), store: "test", for: .update)
    #expect((totals.bytes, totals.count, totals.place) == (4, 2, 2))
  }

  @Test func `a record of the order keeps the other entries`() async throws {
    let store = MemoryStore<[UInt8]>()
    var totals = Totals()
    (totals.bytes, totals.count, totals.place) = (20, 2, 4)
    let other = EntryRecord(place: 4, microseconds: 0, size: 10)
    try await store.apply([
      .set(layout.totalsKey, totals.record), .set(layout.entryKey("k"), old.bytes),
      .set(layout.entryKey("l"), other.bytes), .set(layout.orderKey(0), try #require(OrderRecord(["k", "l"]).bytes)),
    ])
    func perform(_ change: (inout BoundedCommit) -> Void) async throws -> OrderRecord? {
      var commit = BoundedCommit(totals)
      change(&commit)
      #expect(try await store.perform(commit.takeComplete(with: layout, store: "test", for: .update)).isPerformed)
      totals = try Totals(try store.value(forKey: layout.totalsKey), store: "test", for: .update)
      return try store.value(forKey: layout.orderKey(0)).flatMap { OrderRecord($0) }
    }
    #expect(try await perform { $0.use("k", old, at: 1, layout) } == OrderRecord(["l", "k"]))
    #expect(try await perform { $0.evict("l", other, layout) } == OrderRecord(["k"]))
    let moved = EntryRecord(place: 5, microseconds: 1, size: 10)
    #expect(try await perform { $0.remove("k", moved, layout) } == nil)
    #expect(try await store.keys(in: .prefix(layout.orderPrefix), limit: .max) == [])
  }

  @Test func `damaged records of the order are recognized`() throws {
    let keys = [StoreKey("a"), StoreKey(bytes: [UInt8](repeating: 7, count: 508))]
    let bytes = try #require(OrderRecord(keys).bytes)
    #expect(OrderRecord(bytes) == OrderRecord(keys))
    let damages: [[UInt8]] = [[], [0], [0, 0], [0, 2, 1], Array(bytes.dropLast()), bytes + [1]]
    for damage in damages { #expect(OrderRecord(damage) == nil) }
    #expect(OrderRecord().bytes == nil)
  }
}
#endif
