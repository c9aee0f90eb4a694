#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderIndexes

/// Removals of ranges beside other writers.
@Suite(.timeLimit(.minutes(60))) struct RangeRemovalTests {
  /// A removal that has read its range and is about to commit.
  private static func suspendedRemoval(
    in range: KeyRange, of base: FaultyStore<MemoryStore<[UInt8]>>
  ) async throws -> Task<Void, any Error> {
    let notes = try await openNotes(base)
    base.schedule(.suspension(), on: .update, number: 2)
    let removal = Task { try await notes.removeAll(in: range) }
    try await base.waitForSuspended(of: .update)
    return removal
  }

  @Test func `insertions outside the range do not delay a removal`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let other = try await openNotes(base.base)
    for number in 0..<5 { try await other.setValue(Note(title: "\(number)", tags: ["x"]), forKey: "a\(number)") }
    let removal = try await RangeRemovalTests.suspendedRemoval(in: .prefix("a"), of: base)
    try await other.setValue(Note(title: "z", tags: ["x"]), forKey: "z")
    try await other.setValue(Note(title: "b", tags: ["x"]), forKey: "b")
    let operationCount = base.operationCount
    base.resume()
    try await removal.value
    // The removal did not start again.
    #expect(base.operationCount == operationCount)
    #expect(try await other.keys(in: .all, limit: 9) == ["b", "z"])
    #expect(try base.base.value(forKey: "i/removals") == nil)
    try await other.expectConsistent()
  }

  /// Each attempt finds one more entry, until no entry is added.
  @Test func `a removal starts again after an insertion into its range`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let other = try await openNotes(base.base)
    try await other.apply([.set("a", Note(title: "a", tags: ["x"])), .set("z", Note(title: "z"))])
    let removal = try await RangeRemovalTests.suspendedRemoval(in: .prefix("a"), of: base)
    for number in 1...3 {
      try await other.setValue(Note(title: "\(number)", tags: ["x"]), forKey: "a\(number)")
      base.schedule(.suspension(), on: .update, number: 2)
      base.resume()
      try await base.waitForSuspended(of: .update)
    }
    base.resume()
    try await removal.value
    #expect(try await other.keys(in: .all, limit: 9) == ["z"])
    try await other.expectConsistent()
  }

  @Test func `removals of two programs do not delay each other`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let other = try await openNotes(base.base)
    try await other.apply([
      .set("a", Note(title: "a")), .set("b", Note(title: "b")), .set("c", Note(title: "c")),
    ])
    let removal = try await RangeRemovalTests.suspendedRemoval(in: .prefix("a"), of: base)
    try await other.removeAll(in: .prefix("c"))
    let operationCount = base.operationCount
    base.resume()
    try await removal.value
    #expect(base.operationCount == operationCount)
    #expect(try await other.keys(in: .all, limit: 9) == ["b"])
    try await other.expectConsistent()
  }

  /// A program ends after an announcement.
  @Test func `an announcement that is left has no effect`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let notes = try await openNotes(base)
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "a")
    for _ in 0..<20 {
      base.schedule(.error(.ioFailed), on: .update, number: 2)
      await expectStoreError(.ioFailed) { try await notes.removeAll(in: .prefix("a")) }
    }
    let record = try base.base.value(forKey: "i/removals")
    #expect(AnnouncedRemovals(record).removals.count == AnnouncedRemovals.maximumCount)
    #expect(try await notes.keys(tagged: "x") == ["a"])
    // A write outside the ranges leaves the announcements, and an insertion into them withdraws them.
    try await notes.setValue(Note(title: "b"), forKey: "b")
    try await notes.update("a") { $0?.created = 7 }
    #expect(try base.base.value(forKey: "i/removals") == record)
    try await notes.setValue(Note(title: "c"), forKey: "ab")
    #expect(try base.base.value(forKey: "i/removals") == nil)
    // A record that cannot be read announces nothing, and the next announcement replaces it.
    try base.base.apply([.set("i/removals", [0xFF])])
    try await notes.setValue(Note(title: "d"), forKey: "ad")
    try await notes.removeAll(in: .prefix("a"))
    #expect(try await notes.keys(in: .all, limit: 9) == ["b"])
    #expect(try base.base.value(forKey: "i/removals") == nil)
    try await notes.expectConsistent()
  }

  @Test func `an announcement covers its ranges`() throws {
    #expect(AnnouncedRemoval(of: []) == nil)
    let several = try #require(AnnouncedRemoval(of: ["b"..<"c", "e"..<"f"]))
    for key: StoreKey in ["b", "bz", "e", "ez"] { #expect(several.contains(key)) }
    for key: StoreKey in ["a", "f"] { #expect(!several.contains(key)) }
    // Bounds that are longer than a key make the announcement wider.
    let long = StoreKey(bytes: Array(repeating: 0x62, count: 600))
    #expect(try #require(AnnouncedRemoval(of: [long..<"c"])).contains("bc"))
    #expect(try #require(AnnouncedRemoval(of: ["a"..<long])).contains(StoreKey(bytes: long.bytes.prefix(511))))
    #expect(try #require(AnnouncedRemoval(of: [long...])).contains("z"))
  }
}
#endif
