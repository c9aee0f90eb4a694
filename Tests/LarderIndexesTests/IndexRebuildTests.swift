#if LMDB
import Larder
import LarderIndexes
import LarderTesting
import TestSupport
import Testing

@Suite struct IndexRebuildTests {
  /// Writes notes without indexes, so many that a rebuild takes several steps of 128.
  private static func notes(in base: MemoryStore<[UInt8]>, count: Int = 300) async throws {
    let notes = try await openNotes(base, by: [])
    let entries = (0..<count).map { number -> BatchChange<Note> in
      .set(StoreKey("k\(1000 + number)"), Note(title: "\(number)", tags: ["x"], created: number))
    }
    try await notes.apply(ChangeBatch(entries))
  }

  private static let byLength = StoreIndex<Note>("tag", version: 2) { _, note in note.tags.map { [$0.count] } }

  @Test func `a new index is complete after a rebuild`() async throws {
    let base = MemoryStore<[UInt8]>()
    try await IndexRebuildTests.notes(in: base)
    let notes = try await openNotes(base)
    #expect(try await notes.incompleteIndexes() == ["tag", "title"])
    let error = await expectStoreError(.indexIncomplete) { try await notes.keys(tagged: "x") }
    #expect(error?.message.contains("'tag'") == true)
    await expectStoreError(.indexIncomplete) { try await notes.count(where: Note.byTag) }
    #expect(try await notes.verifyIndexes().findings.count == 2)
    // Writes maintain the incomplete index, of entries before and behind the progress of the rebuild.
    try await notes.removeValue(forKey: "k1000")
    try await notes.setValue(Note(title: "new", tags: ["x"], created: 500), forKey: "k1299")
    let report = try await notes.rebuildIndexes()
    #expect(report.entryCount == 299 && report.findings.isEmpty)
    #expect(try await notes.keys(tagged: "x").count == 299)
    #expect(try await notes.keys(tagged: "x", limit: 1) == ["k1299"])
    try await notes.expectConsistent()
    #expect(try await notes.rebuildIndexes().entryCount == 0)
    // Another program need not rebuild anything.
    #expect(try await openNotes(base).incompleteIndexes() == [])
  }

  /// Every call of a rebuild fails once, and the next run continues.
  @Test func `a rebuild continues where it failed`() async throws {
    let whole = try await IndexRebuildTests.rebuild(failingAt: nil)
    for number in 1...whole.operationCount {
      for moment in [StoreFault.Moment.before, .after] {
        let run = try await IndexRebuildTests.rebuild(failingAt: (number, moment))
        // The last operations belong to the second of two steps, and the first one is not repeated.
        if number > whole.operationCount - 4 { #expect(run.entryCountOfNext <= 140 - 128) }
      }
    }
  }

  /// Replaces both indexes, while the operation with a number fails, and completes them in a new process.
  ///
  /// - Returns: The number of operations of the first run, and the number of entries that the second one indexed.
  private static func rebuild(
    failingAt failure: (number: Int, StoreFault.Moment)?
  ) async throws -> (operationCount: Int, entryCountOfNext: Int) {
    let memory = MemoryStore<[UInt8]>()
    try await notes(in: memory, count: 140)
    try await openNotes(memory).rebuildIndexes()
    let base = memory.faulty()
    // The old entries are removed, and new ones are added.
    let notes = try await openNotes(base, by: [byLength])
    let start = base.operationCount
    if let (number, moment) = failure { base.schedule(.error(.ioFailed, moment), number: number) }
    do {
      try await notes.rebuildIndexes()
      #expect(failure == nil)
    } catch StoreError.Code.ioFailed {
      #expect(failure != nil)
    }
    let count = base.operationCount - start
    let next = try await openNotes(memory, by: [byLength])
    #expect(try await next.count() == 140)
    let report = try await next.rebuildIndexes()
    let comment: Comment = "\(String(describing: failure))"
    #expect(try await next.verifyIndexes().findings == [], comment)
    #expect(try await next.count(where: byLength, in: .prefix(components: 1)) == 140, comment)
    // Only the entries of the new index, the lists of them and the catalog are left.
    #expect(try memory.count(in: .prefix("i/")) == 281, comment)
    return (count, report.entryCount)
  }

  @Test func `writers go on during rebuilds`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "writers during rebuilds")
    for round in 0..<max(1, ConformanceSuite.roundsOfProcess / 4) {
      let memory = MemoryStore<[UInt8]>()
      try await IndexRebuildTests.notes(in: memory)
      var plan = FaultPlan(seed: generator.next())
      plan.schedule(.yields(upTo: 5), probability: 1)
      let base = memory.faulty(plan: plan)
      let programs = [try await openNotes(base), try await openNotes(base)]
      let seeds = (0..<4).map { _ in generator.next() }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for program in programs {
          group.addTask { try await program.rebuildIndexes() }
        }
        for (task, seed) in seeds.enumerated() {
          group.addTask {
            var generator = SeededGenerator(seed: seed)
            for step in 0..<40 {
              let key = StoreKey("k\(1000 + Int.random(in: 0..<310, using: &generator))")
              let title = "\(task)/\(step)"
              switch Int.random(in: 0..<6, using: &generator) {
              case 0: try await programs[task % 2].removeValue(forKey: key)
              case 1: try await programs[task % 2].removeAll(in: .only(key))
              case 2: try await programs[task % 2].update(key) { $0?.created += 1000 }
              default: try await programs[task % 2].setValue(Note(title: title, tags: ["x", "y"]), forKey: key)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await programs[0].incompleteIndexes() == [], "seed \(seed), round \(round)")
      try await programs[1].expectConsistent("seed \(seed), round \(round)")
    }
  }

  @Test func `two notes with one title prevent a unique index`() async throws {
    let base = MemoryStore<[UInt8]>()
    try await IndexRebuildTests.notes(in: base, count: 140)
    let tagged = try await openNotes(base, by: [Note.byTag])
    try await tagged.rebuildIndexes()
    try await tagged.setValue(Note(title: "0"), forKey: "z")
    let notes = try await openNotes(base)
    #expect(try await notes.incompleteIndexes() == ["title"])
    #expect(try await notes.keys(tagged: "x").count == 140)
    // The first step has indexed the other note with the title, and the second one fails.
    #expect(await expectStoreError(.notUnique) { try await notes.rebuildIndexes() }?.key == "z")
    await expectStoreError(.notUnique) { try await notes.setValue(Note(title: "0"), forKey: "y") }
    // The title still belongs to the other note when this one is removed.
    try await notes.removeValue(forKey: "z")
    try await notes.rebuildIndexes()
    #expect(try await notes.key(titled: "0") == "k1000")
    try await notes.expectConsistent()
  }

  @Test func `an entry that cannot be indexed keeps its index incomplete`() async throws {
    let base = MemoryStore<[UInt8]>()
    let plain = try await openNotes(base, by: [])
    let long = String(repeating: "x", count: 600)
    try await plain.apply([.set("1", Note(title: "a")), .set("2", Note(title: "b", tags: [long]))])
    try base.apply([.set("v/0", [0])])
    let notes = try await openNotes(base)
    #expect(await expectStoreError(.valueTooLarge) { try await notes.rebuildIndexes() }?.key == "2")
    #expect(try await notes.incompleteIndexes() == ["tag", "title"])
    try await notes.update("2") { $0?.tags = [] }
    // A value that cannot be decoded keeps them incomplete, too.
    #expect(try await notes.rebuildIndexes().findings.map(\.key) == ["0"])
    await expectStoreError(.indexIncomplete) { try await notes.key(titled: "b") }
    #expect(try await notes.verifyIndexes().findings.map(\.key) == [nil, nil, "0"])
    try await notes.setValue(Note(title: "c", tags: ["x"]), forKey: "0")
    #expect(try await notes.rebuildIndexes() == VerificationReport(entryCount: 0))
    #expect(try await notes.key(titled: "b") == "2")
    try await notes.expectConsistent()
  }

  @Test func `a program with other indexes does not write`() async throws {
    let base = MemoryStore<[UInt8]>()
    let old = try await openNotes(base, by: [Note.byTag])
    try await old.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    let new = try await openNotes(base)
    #expect(try await new.incompleteIndexes() == ["title"])
    // The index that both programs define is still complete, and both find entries with it.
    #expect(try await old.keys(tagged: "x") == ["1"])
    #expect(try await new.keys(tagged: "x") == ["1"])
    await expectStoreError(.versionMismatch) { try await old.setValue(Note(title: "b"), forKey: "2") }
    await expectStoreError(.versionMismatch) { try await old.update("1") { $0 = nil } }
    await expectStoreError(.versionMismatch) { try await old.rebuildIndexes() }
    #expect(try await old["1"]?.title == "a")
    try await new.rebuildIndexes()
    try await new.setValue(Note(title: "b", tags: ["x"]), forKey: "2")
    #expect(try await old.keys(tagged: "x") == ["2", "1"])
    try await new.expectConsistent()
    // The program that opens the store last decides.
    let again = try await openNotes(base, by: [Note.byTag])
    await expectStoreError(.versionMismatch) { try await new.key(titled: "a") }
    await expectStoreError(.versionMismatch) { try await new.removeValue(forKey: "1") }
    try await again.removeValue(forKey: "1")
    try await again.rebuildIndexes()
    // The catalog, one index entry and its list.
    #expect(try base.count(in: .prefix("i/")) == 3)
    try await again.expectConsistent()
  }

  @Test func `a write that began before an index existed is not committed`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let old = try await openNotes(base, by: [Note.byTag])
    try await old.setValue(Note(title: "a"), forKey: "1")
    base.schedule(.suspension(), on: .update)
    let write = Task { try await old.setValue(Note(title: "b"), forKey: "1") }
    try await base.waitForSuspended(of: .update)
    let new = try await openNotes(base.base)
    try await new.rebuildIndexes()
    base.resume()
    await expectStoreError(.versionMismatch) { try await write.value }
    #expect(try await new["1"]?.title == "a")
    try await new.expectConsistent()
  }

  @Test func `indexes of an empty store are complete`() async throws {
    let base = MemoryStore<[UInt8]>()
    let notes = try await openNotes(base)
    #expect(try await notes.incompleteIndexes() == [])
    #expect(try await notes.keys(tagged: "x") == [])
    // Removing everything also empties an index that is new to this object.
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    try await notes.removeAll()
    let changed = try await openNotes(base, by: [IndexRebuildTests.byLength, Note.byTitle])
    #expect(try await changed.incompleteIndexes() == [])
  }

  @Test func `indexes are rebuilt from scratch`() async throws {
    let base = MemoryStore<[UInt8]>()
    try await IndexRebuildTests.notes(in: base)
    let notes = try await openNotes(base)
    try await notes.rebuildIndexes()
    // Index entries that disagree with the values, in both directions.
    let keys = try base.keys(in: .prefix(StoreKey(bytes: Array("i/".utf8) + [0x15])), limit: 600, order: .ascending)
    #expect(keys.count == 600)
    try base.apply([
      .remove(keys[0]), .set(StoreKey(bytes: keys[1].bytes.dropLast(2) + [1, 0]), []), .set(keys[400], [9]),
    ])
    let findings = try await notes.verifyIndexes().findings
    #expect(findings.count == 4)
    #expect(try await notes.rebuildIndexes().entryCount == 0)
    // Another object of the program uses the new index as soon as it is complete.
    let other = try await openNotes(base)
    try await notes.rebuildIndexes(fromScratch: true)
    #expect(try await other.keys(tagged: "x", limit: 1) == ["k1299"])
    try await notes.expectConsistent()
    try await other.setValue(Note(title: "z", tags: ["x"], created: 900), forKey: "z")
    try await other.expectConsistent()
  }

  @Test func `a catalog of a newer version is refused`() async throws {
    let base = MemoryStore<[UInt8]>()
    try base.apply([.set("i/catalog", Array(#"{"format":4,"indexes":"unknown"}"#.utf8))])
    await expectStoreError(.versionMismatch) { try await openNotes(base) }
    for text in ["", "{}", "[1]", #"{"format":3,"nextID":1,"indexes":[{}],"dropped":[]}"#] {
      try base.apply([.set("i/catalog", Array(text.utf8))])
      await expectStoreError(.corrupted) { try await openNotes(base) }
      #expect(try base.value(forKey: "i/catalog") == Array(text.utf8))
    }
  }

  @Test func `a damaged index entry is reported`() async throws {
    let base = MemoryStore<[UInt8]>()
    let notes = try await openNotes(base)
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    try base.apply([.set(StoreKey(bytes: Array("i/".utf8) + [0x15, 1, 2, 0x79, 0, 0x15]), [])])
    await expectStoreError(.corrupted) { try await notes.entries(where: Note.byTag, limit: 9) }
    #expect(try await notes.keys(tagged: "x") == ["1"])
    #expect(try await notes.verifyIndexes().findings.map(\.message) == ["an index entry is damaged"])
    try await notes.rebuildIndexes(fromScratch: true)
    try await notes.expectConsistent()
  }
}
#endif
