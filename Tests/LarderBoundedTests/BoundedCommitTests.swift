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
    let complete = commit.withTotals(at: layout.totalsKey, store: "test", for: .update)
    guard try await store.perform(complete).isPerformed else { return nil }
    return try Totals(try store.value(forKey: layout.totalsKey), store: "test", for: .update)
  }

  private func totals(place: UInt64) -> Totals {
    var totals = Totals()
    (totals.bytes, totals.count, totals.place) = (10, 1, place)
    return totals
  }

  /// Otherwise a writer that walks through the order of use could miss the entry, and report damage.
  @Test(arguments: [5, 6, 9]) func aUseChangesThePlaceAlsoIfOthersHaveCountedFurther(_ place: UInt64) async throws {
    var commit = BoundedCommit(totals(place: 5))
    commit.use("k", old, at: 1, layout)
    let before = totals(place: place)
    let after = try #require(try await totals(after: commit, from: before))
    #expect(after.place > before.place)
    #expect((after.bytes, after.count) == (before.bytes, before.count))
  }

  @Test func anEntryThatHasMovedMakesACommitStale() async throws {
    var commit = BoundedCommit(totals(place: 5))
    commit.use("k", EntryRecord(place: 2, microseconds: 0, size: 10), at: 1, layout)
    #expect(try await totals(after: commit, from: totals(place: 5)) == nil)
  }
}
