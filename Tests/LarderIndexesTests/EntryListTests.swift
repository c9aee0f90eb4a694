#if LMDB
import Larder
import LarderIndexes
import LarderTesting
import TestSupport
import Testing

/// The lists of the index entries of keys, and rebuilds beside other programs, which the lists keep apart.
@Suite struct EntryListTests {
  private struct Plain: Codable, Sendable {
    var title: String
  }

  private let base = MemoryStore<[UInt8]>()

  @Test func `a damaged list is reported and repaired`() async throws {
    let notes = try await openNotes(base)
    for number in 1...3 { try await notes.setValue(Note(title: "\(number)", tags: ["x"]), forKey: "\(number)") }
    let list = try #require(try base.value(forKey: "i/e2"))
    for damaged in [[0], [0, 0], [0, 9, 1], [0xFF, 0xFF], list.dropLast(), list + [0]] as [[UInt8]] {
      try base.apply([.set("i/e2", damaged)])
      let error = await expectStoreError(.corrupted) { try await notes.setValue(Note(title: "b"), forKey: "2") }
      #expect(error?.key == "2" && error?.message.contains("from scratch") == true)
      #expect(try await notes.value(forKey: "2")?.title == "2")
      #expect(try await notes.verifyIndexes().findings.map(\.key) == ["2"])
      try await notes.setValue(Note(title: "1", tags: ["x"]), forKey: "1")
      try await notes.rebuildIndexes(fromScratch: true)
      try await notes.expectConsistent()
      #expect(try base.value(forKey: "i/e2")?.count == list.count)
    }
    // A list that lacks an entry, and one that has none.
    for changed in [Array(list.prefix(Int(list[1]) + 2)), nil] {
      try base.apply([changed.map { .set("i/e2", $0) } ?? .remove("i/e2")])
      #expect(try await notes.verifyIndexes().findings.map(\.message) == ["the list of the index entries is wrong"])
      try await notes.rebuildIndexes(fromScratch: true)
      try await notes.expectConsistent()
    }
  }

  /// A rebuild removes entries that the program with the mistake has added for a value that it read in another way.
  @Test func `a rebuild replaces the entries of another program`() async throws {
    try await base.indexed(by: [], codec: .json(Plain.self)).setValue(Plain(title: "t0"), forKey: "1000")
    let shouting = StoreIndex<Plain>("title", isUnique: true) { _, value in [[value.title.uppercased()]] }
    let mistaken = try await base.indexed(by: [shouting], codec: .json())
    try await mistaken.setValue(Plain(title: "a"), forKey: "a")
    let index = StoreIndex<Plain>("title", isUnique: true) { _, value in [[value.title]] }
    let store = try await base.indexed(by: [index], codec: .json())
    try await store.rebuildIndexes()
    #expect(try await store.verifyIndexes() == VerificationReport(entryCount: 2))
    #expect(try await store.count(where: index) == 2)
  }

  /// The other program writes the same value between the reading and the commit of the rebuild.
  @Test func `a rebuild leaves the entries of a concurrent writer`() async throws {
    try await base.indexed(by: [], codec: .json(Plain.self)).setValue(Plain(title: "t0"), forKey: "1000")
    let shouting = StoreIndex<Plain>("title", isUnique: true) { _, value in [[value.title.uppercased()]] }
    let index = StoreIndex<Plain>("title", isUnique: true) { _, value in [[value.title]] }
    let faulty = base.faulty()
    let store = try await faulty.indexed(by: [index], codec: .json())
    faulty.schedule(.suspension(), on: .update)
    let rebuild = Task { try await store.rebuildIndexes() }
    try await faulty.waitForSuspended(of: .update)
    let mistaken = try await base.indexed(by: [shouting], codec: .json())
    try await mistaken.setValue(Plain(title: "t0"), forKey: "1000")
    faulty.resume()
    _ = try await rebuild.value
    // One index entry, which the next write replaces.
    #expect(try await mistaken.verifyIndexes() == VerificationReport(entryCount: 1))
    try await store.setValue(Plain(title: "t0"), forKey: "1000")
    #expect(try await store.verifyIndexes() == VerificationReport(entryCount: 1))
  }

  /// Another program drops all index entries after a rebuild has read the last value.
  @Test func `a rebuild that is overtaken by another one reads all values again`() async throws {
    try await openNotes(base, by: []).apply([.set("1", Note(title: "a", tags: ["x"])), .set("2", Note(title: "b"))])
    let faulty = base.faulty()
    let notes = try await openNotes(faulty)
    // The catalog is read at the beginning, for the slice, for its end, for the values that are left, and now.
    faulty.schedule(.suspension(), on: .value, number: 5)
    let rebuild = Task { try await notes.rebuildIndexes() }
    try await faulty.waitForSuspended(of: .value)
    let dying = base.faulty()
    let other = try await openNotes(dying)
    dying.schedule(.error(.ioFailed), on: .entries)
    await expectStoreError(.ioFailed) { try await other.rebuildIndexes(fromScratch: true) }
    #expect(try await other.incompleteIndexes() == ["tag", "title"])
    faulty.resume()
    _ = try await rebuild.value
    #expect(try await notes.incompleteIndexes() == [])
    try await notes.expectConsistent()
  }
}
#endif
