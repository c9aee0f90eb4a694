#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderIndexes

/// Indexed stores in transactions of their base.
@Suite struct IndexTransactionTests {
  private let base = MemoryStore<[UInt8]>()

  @Test func `values and indexes change together`() async throws {
    let notes = try await openNotes(base)
    let counts = base.typed(Int.self, prefix: "count/", codec: .json())
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    try await base.transaction { tx in
      try await tx.update("1", in: notes) { $0?.tags = ["y"] }
      try await tx.setValue(Note(title: "b", tags: ["y"], created: 1), forKey: "2", in: notes)
      // The last of several writes counts.
      try await tx.setValue(Note(title: "c", tags: ["x"]), forKey: "3", in: notes)
      try await tx.removeValue(forKey: "3", in: notes)
      return .commit(try await tx.setValue(2, forKey: "notes", in: counts))
    }
    #expect(try await notes.keys(tagged: "y") == ["2", "1"])
    #expect(try await notes.keys(tagged: "x") == [])
    #expect(try await counts.value(forKey: "notes") == 2)
    try await notes.expectConsistent()
  }

  @Test func `a discarded transaction leaves the indexes`() async throws {
    let notes = try await openNotes(base)
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    let before = try base.entries(in: .all, limit: .max, order: .ascending).map(\.value)
    try await base.transaction { tx in
      .discard(try await tx.setValue(Note(title: "b", tags: ["y"]), forKey: "1", in: notes))
    }
    #expect(try base.entries(in: .all, limit: .max, order: .ascending).map(\.value) == before)
  }

  @Test func `unique keys are checked at the end`() async throws {
    let notes = try await openNotes(base, by: [Note.byTag, Note.byTitle])
    try await notes.apply([.set("1", Note(title: "a")), .set("2", Note(title: "b"))])
    // Two entries exchange theirs.
    try await base.transaction { tx in
      try await tx.update("1", in: notes) { $0?.title = "b" }
      return .commit(try await tx.update("2", in: notes) { $0?.title = "a" })
    }
    #expect(try await notes.value(forKey: "1")?.title == "b")
    // The key that looks like one of the base is that of the note.
    for (key, title): (StoreKey, String) in [("3", "a"), ("2", "b"), ("v/3", "a")] {
      let error = await #expect(throws: StoreError.self) {
        try await base.transaction { tx in .commit(try await tx.setValue(Note(title: title), forKey: key, in: notes)) }
      }
      #expect(error?.code == .notUnique && error?.key == key)
    }
    // Two new entries of one transaction.
    await expectStoreError(.notUnique) {
      try await base.transaction { tx in
        try await tx.setValue(Note(title: "n"), forKey: "8", in: notes)
        return .commit(try await tx.setValue(Note(title: "n"), forKey: "9", in: notes))
      }
    }
    try await notes.expectConsistent()
    #expect(try await notes.count(in: .all) == 2)
  }

  /// The plain write and the transaction change the same entry in turn.
  @Test func `writes beside a transaction run it again`() async throws {
    let notes = try await openNotes(base)
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    var attempts = 0
    try await base.transaction { tx in
      attempts += 1
      let note = try await tx.value(forKey: "1", in: notes)
      if attempts == 1 { try await notes.update("1") { $0?.tags = ["y", "z"] } }
      var changed = try #require(note)
      changed.tags.append("new")
      return .commit(try await tx.setValue(changed, forKey: "1", in: notes))
    }
    #expect(attempts == 2)
    #expect(try await notes.value(forKey: "1")?.tags == ["y", "z", "new"])
    try await notes.expectConsistent()
  }

  /// The transaction inserts into the range while its keys are being read.
  @Test func `an insertion stops the removal of a range`() async throws {
    let faulty = base.faulty()
    let notes = try await openNotes(faulty)
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 2..<60 {
        group.addTask {
          try await faulty.transaction { tx in
            .commit(try await tx.setValue(Note(title: "\(number)", tags: ["x"]), forKey: "\(number)", in: notes))
          }
        }
        group.addTask { try await notes.removeAll(in: "1"..<"4") }
      }
      try await group.waitForAll()
    }
    try await notes.removeAll(in: "1"..<"4")
    #expect(try await notes.keys(in: "1"..<"4", limit: 9, order: .ascending) == [])
    try await notes.expectConsistent()
  }

  @Test func `other definitions are refused`() async throws {
    let notes = try await openNotes(base, by: [Note.byTag])
    _ = try await openNotes(base, by: [Note.byTag, Note.byTitle])
    await expectStoreError(.versionMismatch) {
      try await base.transaction { tx in .commit(try await tx.setValue(Note(title: "a"), forKey: "1", in: notes)) }
    }
    // Reading is possible.
    #expect(try await base.transaction { tx in .commit(try await tx.contains("1", in: notes)) } == false)
  }

  @Test func `two objects for the same indexes are refused`() async throws {
    let (first, second) = (try await openNotes(base), try await openNotes(base))
    await expectStoreError(.invalidArgument) {
      try await base.transaction { tx in
        try await tx.setValue(Note(title: "a"), forKey: "1", in: first)
        return .commit(try await tx.setValue(Note(title: "b"), forKey: "2", in: second))
      }
    }
  }
}
#endif
