#if LMDB
import Larder
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

@testable import LarderIndexes

@Suite struct IndexedStoreTests {
  @Test func `notes with a tag are found newest first`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>())
    try await notes.setValue(Note(title: "a", tags: ["swift", "ios"], created: 1), forKey: "1")
    try await notes.setValue(Note(title: "b", tags: ["swift"], created: 3), forKey: "2")
    try await notes.setValue(Note(title: "c", tags: ["swiftly", "swift"], created: 2), forKey: "3")
    #expect(try await notes.keys(tagged: "swift") == ["2", "3", "1"])
    #expect(try await notes.keys(tagged: "swift", limit: 2) == ["2", "3"])
    #expect(try await notes.keys(tagged: "swif") == [])
    #expect(try await notes.count(where: Note.byTag, in: .prefix(components: "swift")) == 3)
    #expect(try await notes.count(where: Note.byTag) == 5)
    // A range within a tag.
    let range = StoreKey(components: "swift", 1)..<StoreKey(components: "swift", 3)
    #expect(try await notes.entries(where: Note.byTag, in: range, limit: 9).map(\.key) == ["1", "3"])

    try await notes.update("2") { $0?.tags = ["ios"] }
    try await notes.update("1") { $0?.created = 4 }
    #expect(try await notes.keys(tagged: "swift") == ["1", "3"])
    #expect(try await notes.keys(tagged: "ios") == ["1", "2"])
    try await notes.removeValue(forKey: "1")
    #expect(try await notes.keys(tagged: "swift") == ["3"])
    try await notes.expectConsistent()
  }

  @Test func `entries with equal index keys are in the order of their keys`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>(), by: [Note.byTag])
    // A key that looks like the end of another index key, and keys with bytes that the encoding escapes.
    let keys: [StoreKey] = ["a", "a\0", "a\0b", "b", StoreKey(bytes: [0]), StoreKey(bytes: [0, 0xFF]), "\u{2}b\0"]
    for key in keys { try await notes.setValue(Note(title: "t", tags: ["x", "x", "x\0"]), forKey: key) }
    #expect(
      try await notes.entries(where: Note.byTag, in: .prefix(components: "x"), limit: 99).map(\.key) == keys.sorted())
    #expect(try await notes.keys(tagged: "x\0") == keys.sorted().reversed())
    try await notes.expectConsistent()
  }

  @Test func `a walk over pages shows each entry once`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>(), by: [Note.byTag])
    for number in 0..<10 {
      let tags = number == 4 ? ["other"] : ["x"]
      try await notes.setValue(Note(title: "", tags: tags, created: number % 3), forKey: StoreKey("\(number)"))
    }
    for order in ScanOrder.allCases {
      var (keys, counts): ([StoreKey], [Int]) = ([], [])
      var cursor: PageCursor?
      repeat {
        // The cursor survives as text.
        let restored = try cursor.map { try PageCursor($0.text) }
        let page = try await notes.page(
          where: Note.byTag, in: .prefix(components: "x"), size: 4, order: order, after: restored)
        keys += page.entries.map(\.key)
        counts.append(page.entries.count)
        // An entry behind the cursor, and one ahead of it.
        try await notes.setValue(Note(title: "", tags: ["x"], created: -1), forKey: "before")
        try await notes.setValue(Note(title: "", tags: ["x"], created: 9), forKey: "later")
        cursor = page.next
      } while cursor != nil
      let expected: [StoreKey] = ["0", "3", "6", "9", "1", "7", "2", "5", "8"]
      let seen = keys.filter { $0.count == 1 }
      #expect(seen == (order == .ascending ? expected : expected.reversed()))
      #expect(counts.dropLast().allSatisfy { $0 == 4 })
    }
    await expectStoreError(.invalidArgument) { try await notes.page(where: Note.byTag, size: 0) }
  }

  @Test func `a cursor belongs to its query`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>(), by: [Note.byTag, Note.byTitle])
    for number in 0..<4 {
      try await notes.setValue(Note(title: "\(number)", tags: ["x", "y"], created: 0), forKey: StoreKey("\(number)"))
    }
    let next = try #require(
      await notes.page(where: Note.byTag, in: .prefix(components: "x"), size: 2).next)
    #expect(next.index == Note.byTag.name)
    let second = try await notes.page(where: Note.byTag, in: .prefix(components: "x"), after: next)
    #expect(second.entries.map(\.key) == ["2", "3"])
    // Another index, another range, and pages by key.
    await expectStoreError(.invalidArgument) { try await notes.page(where: Note.byTitle, after: next) }
    await expectStoreError(.invalidArgument) {
      try await notes.page(where: Note.byTag, in: .prefix(components: "y"), after: next)
    }
    await expectStoreError(.invalidArgument) { try await notes.pages().page(after: next) }
    await expectStoreError(.invalidArgument) {
      try await notes.page(where: Note.byTag, after: PageCursor(after: next.key))
    }
  }

  @Test func `a query refuses arguments that it cannot serve`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>(), by: [Note.byTag])
    await expectStoreError(.invalidArgument) {
      try await notes.page(where: Note.byTag, order: .ascending, after: PageCursor(after: "x", order: .descending))
    }
    await expectStoreError(.invalidArgument) { try await notes.entries(where: Note.byTag, limit: -1) }
    await expectStoreError(.invalidArgument) { try await notes.entries(where: Note.byTitle, limit: 1) }
  }

  @Test func `an entry that changes during a query is omitted`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let notes = try await openNotes(base)
    for number in 0..<6 {
      try await notes.setValue(
        Note(title: "\(number)", tags: ["x"], created: number), forKey: StoreKey("\(number)"))
    }
    // The query has read the index, and is about to read the values.
    base.schedule(.suspension(), on: .values)
    let query = Task { try await notes.entries(where: Note.byTag, in: .prefix(components: "x"), limit: 3) }
    try await base.waitForSuspended(of: .values)
    let other = try await openNotes(base.base)
    try await other.removeValue(forKey: "0")
    try await other.setValue(Note(title: "moved", tags: ["y"]), forKey: "1")
    try await other.setValue(Note(title: "new title", tags: ["x"], created: 2), forKey: "2")
    base.resume()
    let entries = try await query.value
    // The result is still full, and each value has the index key by which it was found.
    #expect(entries.map(\.key) == ["2", "3", "4"])
    #expect(entries.first?.value.title == "new title")
  }

  /// A removed range is empty, also if another program adds an entry to it between the reading and the commit.
  @Test func `an entry that is added to a removed range is removed`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let notes = try await openNotes(base)
    try await notes.apply([.set("a", Note(title: "a", tags: ["x"])), .set("z", Note(title: "z", tags: ["x"]))])
    // The removal was announced, has read its range, and is about to commit.
    base.schedule(.suspension(), on: .update, number: 2)
    let removal = Task { try await notes.removeAll(in: "a"..<"c") }
    try await base.waitForSuspended(of: .update)
    let other = try await openNotes(base.base)
    try await other.setValue(Note(title: "b", tags: ["x"]), forKey: "b")
    #expect(try await other.keys(in: .all, limit: 9) == ["a", "b", "z"])
    base.resume()
    try await removal.value
    // Otherwise no order of the two writes would explain that the other program saw both entries.
    #expect(try await notes.keys(in: .all, limit: 9) == ["z"])
    #expect(try await notes.keys(tagged: "x") == ["z"])
    try await notes.expectConsistent()
  }

  @Test func `a title belongs to one note`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>())
    try await notes.apply([
      .set("1", Note(title: "a", tags: ["x"])), .set("2", Note(title: "b")), .set("3", Note(title: "c")),
    ])
    let error = await expectStoreError(.notUnique) {
      try await notes.apply([.remove("3"), .set("2", Note(title: "a", tags: ["x"]))])
    }
    #expect(error?.key == "2" && error?.operation == .apply && error?.outcome == .nothingChanged)
    #expect(error?.description.contains("'title'") == true)
    await expectStoreError(.notUnique) { try await notes.update("2") { $0?.title = "c" } }
    await expectStoreError(.notUnique) {
      try await notes.apply([.set("4", Note(title: "d")), .set("5", Note(title: "d"))])
    }
    #expect(try await notes.key(titled: "a") == "1")
    #expect(try await notes.key(titled: "c") == "3")
    #expect(try await notes.keys(in: .all, limit: 9) == ["1", "2", "3"])
    #expect(try await notes.keys(tagged: "x") == ["1"])

    // Exchanged and released in one batch.
    try await notes.update(["1", "2"]) { $0.swapAt(0, 1) }
    try await notes.apply([.set("4", Note(title: "c")), .remove("3")])
    try await notes.apply([.removeAll("4"..<"5"), .set("5", Note(title: "c"))])
    #expect(try await notes.key(titled: "a") == "2")
    #expect(try await notes.key(titled: "c") == "5")
    try await notes.expectConsistent()
  }

  @Test func `the last change of a key in a batch counts`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>())
    for number in 1...3 { try await notes.setValue(Note(title: "\(number)", tags: ["old"]), forKey: "\(number)") }
    try await notes.apply([
      .set("1", Note(title: "a", tags: ["lost"])), .removeAll("1"..<"3"), .set("2", Note(title: "b", tags: ["new"])),
      .set("4", Note(title: "d")), .remove("4"), .set("3", Note(title: "x")),
      .set("3", Note(title: "c", tags: ["new"])),
    ])
    #expect(try await notes.keys(in: .all, limit: 9) == ["2", "3"])
    #expect(try await notes.keys(tagged: "new") == ["3", "2"])
    #expect(try await notes.count(where: Note.byTag) == 2)
    try await notes.expectConsistent()
    try await notes.removeAll()
    #expect(try await notes.count(where: Note.byTag) == 0)
    #expect(try notes.base.count(in: .prefix("v/")) == 0)
    try await notes.setValue(Note(title: "b"), forKey: "9")
    try await notes.expectConsistent()
  }

  @Test func `an index key that does not fit is refused`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>())
    try await notes.setValue(Note(title: "a"), forKey: "1")
    let long = String(repeating: "x", count: 600)
    let error = await expectStoreError(.valueTooLarge) {
      try await notes.apply([.remove("1"), .set("2", Note(title: "b", tags: [long]))])
    }
    #expect(error?.key == "2")
    #expect(try await notes.keys(in: .all, limit: 9) == ["1"])
    // A key that leaves no room for an index entry is fine as long as no index needs one.
    let longKey = StoreKey(bytes: Array(repeating: 0x61, count: notes.information.maximumKeyLength))
    try await notes.setValue(Note(title: "b"), forKey: longKey)
    await expectStoreError(.valueTooLarge) { try await notes.setValue(Note(title: "b", tags: ["x"]), forKey: longKey) }
    try await notes.expectConsistent()
  }

  @Test func `a damaged value leaves no index entries`() async throws {
    let base = MemoryStore<[UInt8]>()
    let notes = try await openNotes(base)
    for number in 1...4 {
      try await notes.setValue(Note(title: "\(number)", tags: ["x"], created: number), forKey: "\(number)")
    }
    try base.apply([.set("v/1", [0]), .set("v/2", [0]), .set("v/3", [0])])
    #expect(await expectStoreError(.corrupted) { try await notes.keys(tagged: "x") }?.key == "3")
    #expect(try await notes.verifyIndexes().findings.map(\.key) == ["1", "2", "3"])
    try await notes.removeValue(forKey: "1")
    try await notes.setValue(Note(title: "1", tags: ["y"]), forKey: "2")
    try await notes.removeAll(in: "3"..<"4")
    #expect(try await notes.keys(tagged: "x") == ["4"])
    #expect(try await notes.key(titled: "1") == "2")
    try await notes.expectConsistent()
  }

  @Test func `names and prefixes are checked`() async throws {
    let base = MemoryStore<[UInt8]>()
    await expectStoreError(.invalidArgument) { try await openNotes(base, by: [Note.byTag, Note.byTag]) }
    for prefixes in [("", "i/"), ("v/", ""), ("n/", "n/i/"), ("n/v/", "n/"), ("n/", "n/")] as [(StoreKey, StoreKey)] {
      await expectStoreError(.invalidArgument) {
        try await base.indexed(
          by: [Note.byTag], codec: .json(Note.self), valuePrefix: prefixes.0, indexPrefix: prefixes.1)
      }
    }
    #expect(try base.count(in: .all) == 0)
  }

  @Test func `two indexed stores share a base`() async throws {
    let base = MemoryStore<[UInt8]>()
    let work = try await base.indexed(
      by: [Note.byTag], codec: .json(Note.self), valuePrefix: "work/v", indexPrefix: "work/i")
    let home = try await base.indexed(
      by: [Note.byTag, Note.byTitle], codec: .json(Note.self), valuePrefix: "home/v", indexPrefix: "home/i")
    try await work.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    try await home.setValue(Note(title: "a", tags: ["x"]), forKey: "2")
    try await work.removeAll()
    #expect(try await home.keys(tagged: "x") == ["2"])
    #expect(try await work.keys(tagged: "x") == [])
    try await home.expectConsistent()
  }

  /// An indexed store of bytes below another one, which another program changes between the reading and the commit.
  @Test func `an indexed store over another one starts again`() async throws {
    let byCount = StoreIndex<[UInt8]>("count") { _, bytes in [[bytes.count]] }
    let inner = try await MemoryStore<[UInt8]>().indexed(by: [byCount], codec: .raw)
    let base = inner.faulty()
    let (notes, other) = (try await openNotes(base), try await openNotes(inner))
    try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    base.schedule(.suspension(), on: .update)
    let bodyCount = Locked(0)
    let update = Task {
      try await notes.update("1") { note in
        bodyCount.withLock { $0 += 1 }
        note?.created += 1
      }
    }
    try await base.waitForSuspended(of: .update)
    try await other.update("1") { $0?.created += 10 }
    base.resume()
    try await update.value
    #expect(try await notes["1"]?.created == 11)
    #expect(bodyCount.withLock { $0 } == 2)
    await expectStoreError(.notUnique) { try await notes.setValue(Note(title: "a"), forKey: "2") }
    try await notes.expectConsistent()
    #expect(try await inner.verifyIndexes().findings == [])
  }

  /// The catalog is compared in every commit, but written only when it changes.
  @Test func `only changed entries are written`() async throws {
    let location = try ConformanceLocation()
    let base = try await LMDBStore<[UInt8]>(path: location.path("notes"), codec: .raw)
    let notes = try await openNotes(base, by: [Note.byTag])
    try await notes.setValue(Note(title: "a", tags: ["x"], created: 1), forKey: "1")
    var changes = base.changes().makeAsyncIterator()
    try await notes.update("1") { $0?.title = "b" }
    #expect(await changes.next() == .key("v/1"))
    try await notes.setValue(Note(title: "c", tags: ["x"], created: 1), forKey: "1")
    #expect(await changes.next() == .key("v/1"))
    // An insertion writes the value, its index entry and the list of them.
    try await notes.setValue(Note(title: "d", tags: ["x"], created: 2), forKey: "2")
    let entry = StoreKey(bytes: Array("i/".utf8) + StoreKey(components: 1, "x", 2, Array("2".utf8)).bytes)
    #expect(await [changes.next(), changes.next(), changes.next()] == [.key(entry), .key("i/e2"), .key("v/2")])
    try await notes.close()
    #expect(await changes.next() == nil)
    try location.remove()
  }

  @Test func `a range of index keys needs bounds of components`() async throws {
    let notes = try await openNotes(MemoryStore<[UInt8]>())
    try await notes.setValue(Note(title: "a", tags: ["swift"]), forKey: "1")
    for range: KeyRange in [.prefix("swift"), "a"..<"z", "swift"..., ..<"swift", .only("swift")] {
      let error = await expectStoreError(.invalidArgument) {
        try await notes.entries(where: Note.byTag, in: range, limit: 1)
      }
      #expect(error?.operation == .entries && error?.message.contains(".prefix(components:") == true)
      await expectStoreError(.invalidArgument) { try await notes.page(where: Note.byTag, in: range) }
      await expectStoreError(.invalidArgument) { try await notes.count(where: Note.byTag, in: range) }
    }
    // All tags that begin with some letters: a range whose bounds end within a component.
    let start = StoreKey(bytes: StoreKey(components: "sw").bytes.dropLast())
    #expect(try await notes.count(where: Note.byTag, in: .prefix(start)) == 1)
  }

  /// A store of values becomes an indexed one.
  @Test func `values of a typed view are adopted`() async throws {
    let base = MemoryStore<[UInt8]>()
    let plain = base.typed(Note.self, prefix: "note/", codec: .json())
    try await plain.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    let notes = try await base.indexed(
      by: [Note.byTag], codec: .json(Note.self), valuePrefix: "note/", indexPrefix: "index/")
    #expect(try await notes.incompleteIndexes() == ["tag"])
    await expectStoreError(.indexIncomplete) { try await notes.keys(tagged: "x") }
    try await notes.rebuildIndexes()
    #expect(try await notes.keys(tagged: "x") == ["1"])
    #expect(try await plain["1"] == Note(title: "a", tags: ["x"]))
  }

  @Test func `errors of the base name keys of the store`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let notes = try await openNotes(base)
    base.schedule(.error(.full), on: .update)
    let refused = await expectStoreError(.full) { try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1") }
    #expect(refused?.operation == .apply && refused?.outcome == .nothingChanged)
    #expect(try await notes.count() == 0)
    // The outcome is unknown, but values and indexes agree.
    base.schedule(.error(.ioFailed, .after), on: .update)
    let unknown = await expectStoreError(.ioFailed) {
      try await notes.setValue(Note(title: "a", tags: ["x"]), forKey: "1")
    }
    #expect(unknown?.outcome == .unknown)
    #expect(try await notes.keys(tagged: "x") == ["1"])
    try await notes.expectConsistent()
    try await notes.close()
    await expectStoreError(.closed) { try await notes.keys(tagged: "x") }
    await expectStoreError(.closed) { try await notes.rebuildIndexes() }
    await expectStoreError(.closed) { try await notes.verifyIndexes() }
  }
}
#endif
