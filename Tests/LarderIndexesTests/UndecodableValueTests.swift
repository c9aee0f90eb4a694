#if LMDB
import Larder
import LarderIndexes
import LarderTesting
import TestSupport
import Testing

/// Rebuilds with values that the program cannot decode.
@Suite struct UndecodableValueTests {
  private struct Plain: Codable, Sendable {
    var title: String
  }

  /// The type of a deployment by mistake: the new property should be optional.
  private struct Broken: Codable, Sendable {
    var title: String
    var tag: String

    static let byTitle = StoreIndex<Broken>("title", isUnique: true) { _, value in [[value.title]] }
    static let byTag = StoreIndex<Broken>("tag") { _, value in [[value.tag]] }
  }

  private struct Fixed: Codable, Sendable {
    var title: String
    var tag: String?

    static let byTitle = StoreIndex<Fixed>("title", isUnique: true) { _, value in [[value.title]] }
    static let byTag = StoreIndex<Fixed>("tag") { _, value in [[value.tag]] }
  }

  private let base = MemoryStore<[UInt8]>()

  private func openBroken() async throws -> IndexedStore<MemoryStore<[UInt8]>, Broken> {
    try await base.indexed(by: [Broken.byTitle, Broken.byTag], codec: .json())
  }

  private func openFixed() async throws -> IndexedStore<MemoryStore<[UInt8]>, Fixed> {
    try await base.indexed(by: [Fixed.byTitle, Fixed.byTag], codec: .json())
  }

  /// Stores values without the property of the index `tag`.
  ///
  /// - Parameter isIndexed: A Boolean value that indicates whether they are in an index of their titles.
  private func storePlainValues(count: Int, isIndexed: Bool) async throws {
    let byTitle = StoreIndex<Plain>("title", isUnique: true) { _, value in [[value.title]] }
    let store = try await base.indexed(by: isIndexed ? [byTitle] : [], codec: .json())
    let changes = (0..<count).map { BatchChange.set(StoreKey("\(1000 + $0)"), Plain(title: "t\($0)")) }
    try await store.apply(ChangeBatch(changes))
  }

  // MARK: Mistakes in the program

  @Test func `a program that can decode nothing completes no index`() async throws {
    try await storePlainValues(count: 1000, isIndexed: true)
    let broken = try await openBroken()
    let before = try base.entries(in: .all, limit: .max, order: .ascending).map(\.value)
    for _ in 0..<2 {
      let error = await expectStoreError(.undecodable) { try await broken.rebuildIndexes() }
      #expect(error?.key == "1000" && error?.operation == .rebuildIndexes)
      #expect(error?.message.contains("none of the values") == true)
    }
    #expect(try await broken.incompleteIndexes() == ["tag"])
    // Nothing was written.
    #expect(try base.entries(in: .all, limit: .max, order: .ascending).map(\.value) == before)

    let fixed = try await openFixed()
    #expect(try await fixed.rebuildIndexes() == VerificationReport(entryCount: 1000))
    #expect(try await fixed.count(where: Fixed.byTag) == 1000)
    #expect(try await fixed.verifyIndexes() == VerificationReport(entryCount: 1000))
  }

  @Test func `a unique index refuses a duplicate after the mistake`() async throws {
    try await storePlainValues(count: 500, isIndexed: false)
    await expectStoreError(.undecodable) { try await openBroken().rebuildIndexes() }
    let fixed = try await openFixed()
    try await fixed.rebuildIndexes()
    await expectStoreError(.notUnique) { try await fixed.setValue(Fixed(title: "t7"), forKey: "another") }
    #expect(try await fixed.verifyIndexes() == VerificationReport(entryCount: 500))
  }

  /// The first values that can be decoded are far behind.
  @Test func `a single value is enough for a rebuild`() async throws {
    try await storePlainValues(count: 400, isIndexed: false)
    let last = Array(#"{"title":"last","tag":"x"}"#.utf8)
    try base.apply([.set("v/z", last)])
    let broken = try await openBroken()
    #expect(try await broken.rebuildIndexes().entryCount == 1)
    #expect(try base.count(in: .prefix("i/u")) == 400)
  }

  @Test func `a value of a newer version stops a rebuild`() async throws {
    let json = JSONCodec<Plain>()
    let index = StoreIndex<Plain>("title") { _, value in [[value.title]] }
    let newer = base.typed(Plain.self, prefix: "v/", codec: try json.versioned(2, ValueMigration(from: 1, json) { $0 }))
    for number in 0..<300 { try await newer.setValue(Plain(title: "\(number)"), forKey: StoreKey("\(1000 + number)")) }
    let older = base.typed(Plain.self, prefix: "v/", codec: try json.versioned(1))
    for key: StoreKey in ["0", "1200"] { try await older.setValue(Plain(title: "old"), forKey: key) }
    let store = try await base.indexed(by: [index], codec: try json.versioned(1))
    #expect(await expectStoreError(.versionMismatch) { try await store.rebuildIndexes() }?.key == "1000")
    #expect(try await store.incompleteIndexes() == ["title"])
    #expect(try base.count(in: .prefix("i/u")) == 0)
  }

  // MARK: Remembering

  /// Every other value can be decoded by the program with the mistake.
  private func storeMixedValues(count: Int) async throws {
    try await storePlainValues(count: count, isIndexed: true)
    let changes = stride(from: 1, to: count, by: 2).map { number in
      BatchChange.set(StoreKey("v/\(1000 + number)"), Array(#"{"title":"t\#(number)","tag":"x"}"#.utf8))
    }
    try base.apply(ChangeBatch(changes))
  }

  @Test func `undecodable values are remembered until they can be decoded`() async throws {
    try await storeMixedValues(count: 600)
    let keys = stride(from: 1000, to: 1600, by: 2).map { StoreKey("\($0)") }
    let report = try await openBroken().rebuildIndexes()
    #expect(report.entryCount == 300 && report.findings.map(\.key) == keys)
    // Another process finds the same, without reading the others again.
    let broken = try await openBroken()
    #expect(try await broken.incompleteIndexes() == ["tag"])
    let error = await expectStoreError(.indexIncomplete) { try await broken.count(where: Broken.byTag) }
    #expect(error?.message.contains("cannot be decoded") == true)
    let again = try await broken.rebuildIndexes()
    #expect(again.entryCount == 0 && again.findings == report.findings)
    #expect(try base.count(in: .prefix("i/u")) == 300)
    // The complete index works.
    #expect(try await broken.count(where: Broken.byTitle) == 600)

    let fixed = try await openFixed()
    #expect(try await fixed.rebuildIndexes() == VerificationReport(entryCount: 300))
    #expect(try await fixed.count(where: Fixed.byTag) == 600)
    #expect(try await fixed.count(where: Fixed.byTag, in: .prefix(components: "x")) == 300)
    #expect(try await fixed.verifyIndexes() == VerificationReport(entryCount: 600))
    for record: StoreKey in ["i/u", "i/progress"] { #expect(try base.count(in: .prefix(record)) == 0) }
  }

  @Test func `a unique index that lacks keys accepts no new ones`() async throws {
    try await storeMixedValues(count: 10)
    // The index of titles is new, so that it lacks those of the even numbers.
    let unique = StoreIndex<Broken>("title", version: 2, isUnique: true) { _, value in [[value.title]] }
    let broken = try await base.indexed(by: [unique, Broken.byTag], codec: .json())
    try await broken.rebuildIndexes()
    // A duplicate of a value that is not indexed, and a title that may be one.
    for title in ["t4", "new"] {
      let error = await expectStoreError(.indexIncomplete) {
        try await broken.setValue(Broken(title: title, tag: "x"), forKey: "a")
      }
      #expect(error?.key == "a" && error?.message.contains("'title'") == true)
      await expectStoreError(.indexIncomplete) {
        try await base.transaction { tx in
          .commit(try await tx.setValue(Broken(title: title, tag: "x"), forKey: "a", in: broken))
        }
      }
    }
    // Other changes are possible.
    try await broken.update("1001") { $0?.tag = "y" }
    try await broken.setValue(Broken(title: "t3", tag: "z"), forKey: "1003")
    try await broken.removeValue(forKey: "1005")
    // So are changes after which no value is left that cannot be decoded.
    await expectStoreError(.indexIncomplete) {
      try await broken.setValue(Broken(title: "t0", tag: "x"), forKey: "1000")
    }
    for key: StoreKey in ["1000", "1002", "1004"] { try await broken.removeValue(forKey: key) }
    try await broken.apply([
      .set("1006", Broken(title: "t6", tag: "x")), .set("1008", Broken(title: "t8", tag: "x")),
      .set("a", Broken(title: "t4", tag: "x")),
    ])
    try await broken.setValue(Broken(title: "b", tag: "x"), forKey: "b")
    #expect(try await broken.incompleteIndexes() == ["title", "tag"])
    #expect(try await broken.rebuildIndexes() == VerificationReport(entryCount: 0))
    #expect(try await broken.incompleteIndexes() == [])
    #expect(try await broken.verifyIndexes() == VerificationReport(entryCount: 8))
  }

  /// Another program remembers a value between the planning and the commit of an addition.
  @Test func `an addition is planned again after a value was remembered`() async throws {
    let faulty = base.faulty()
    let plain = try await openNotes(base, by: [])
    try await plain.apply([.set("1", Note(title: "a")), .set("2", Note(title: "b"))])
    try base.apply([.set("v/2", [0])])
    let notes = try await openNotes(faulty)
    faulty.schedule(.suspension(), on: .update)
    let write = Task { try await notes.setValue(Note(title: "b"), forKey: "3") }
    try await faulty.waitForSuspended(of: .update)
    try await openNotes(base).rebuildIndexes()
    faulty.resume()
    await expectStoreError(.indexIncomplete) { try await write.value }
    #expect(try await notes.value(forKey: "3") == nil)
  }

  /// The rebuild finds another undecodable value between the planning and the commit of a batch that replaces the only one
  /// that was known.
  @Test func `a replacement is planned again after another value was remembered`() async throws {
    let plain = try await openNotes(base, by: [])
    let keys = (0..<200).map { StoreKey("\(1000 + $0)") }
    try await plain.apply(ChangeBatch(keys.indices.map { .set(keys[$0], Note(title: "\($0)")) }))
    try base.apply([.set("v/1002", [0]), .set("v/1150", [0])])
    let (rebuilding, writing) = (base.faulty(), base.faulty())
    let (first, second) = (try await openNotes(rebuilding), try await openNotes(writing))
    // The second slice has been read, and is about to be committed.
    rebuilding.schedule(.suspension(), on: .update, number: 2)
    let rebuild = Task { try await first.rebuildIndexes() }
    try await rebuilding.waitForSuspended(of: .update)
    writing.schedule(.suspension(), on: .update, number: 2)
    // Its first attempt is stale, because it does not know the new catalog.
    let write = Task { try await second.setValue(Note(title: "150"), forKey: "1002") }
    try await writing.waitForSuspended(of: .update)
    rebuilding.resume()
    #expect(try await rebuild.value.findings.map(\.key) == ["1002", "1150"])
    writing.resume()
    await expectStoreError(.indexIncomplete) { try await write.value }
  }

  // MARK: Writing

  /// The ways to replace or remove the values of the keys `2` and `3`, of which `2` is kept by some.
  fileprivate enum Write: CaseIterable, Sendable {
    case set, remove, batch, removeRange, removeAll, removeAllAndSet, transaction
  }

  private func perform(_ write: Write, on notes: Notes<MemoryStore<[UInt8]>>) async throws {
    let note = Note(title: "new", tags: ["x", "new"])
    switch write {
    case .set:
      try await notes.removeValue(forKey: "3")
      try await notes.setValue(note, forKey: "2")
    case .remove:
      for key: StoreKey in ["2", "3"] { try await notes.removeValue(forKey: key) }
    case .batch: try await notes.apply([.set("2", note), .remove("3")])
    case .removeRange: try await notes.removeAll(in: "2"..<"4")
    case .removeAll: try await notes.removeAll()
    case .removeAllAndSet: try await notes.apply([.removeAll(.all), .set("2", note)])
    case .transaction:
      try await notes.base.transaction { tx in
        try await tx.removeValue(forKey: "3", in: notes)
        return .commit(try await tx.setValue(note, forKey: "2", in: notes))
      }
    }
  }

  /// The values were indexed before they were damaged, in complete indexes or in incomplete ones.
  @Test(arguments: Write.allCases, [false, true])
  private func `a write over a damaged value leaves no index entries`(_ write: Write, isIncomplete: Bool) async throws {
    let indexes = [Note.byTag, Note.byTitle]
    var notes = try await openNotes(base, by: indexes)
    for number in 1...5 {
      try await notes.setValue(Note(title: "\(number)", tags: ["x"], created: number), forKey: "\(number)")
    }
    try base.apply([.set("v/2", [0]), .set("v/3", [0])])
    if isIncomplete {
      // One index is replaced, and the other one still has the entries of the damaged values.
      notes = try await openNotes(base, by: [StoreIndex("tag", version: 2, keys: Note.tagKeys), Note.byTitle])
      #expect(try await notes.rebuildIndexes().findings.map(\.key) == ["2", "3"])
    } else {
      #expect(try await notes.verifyIndexes().findings.map(\.key) == ["2", "3"])
    }
    try await perform(write, on: notes)
    #expect(try base.count(in: .prefix("i/u")) == 0)
    try await notes.rebuildIndexes()
    try await notes.expectConsistent()
    for record: StoreKey in ["i/u", "i/progress"] { #expect(try base.count(in: .prefix(record)) == 0) }
    // The old titles are free again.
    try await notes.apply([.set("8", Note(title: "2")), .set("9", Note(title: "3"))])
    try await notes.expectConsistent()
  }

  /// The number of entries that a write over an undecodable value reads.
  @Test func `a write over a damaged value reads no other entries`() async throws {
    var readCounts: [Int] = []
    for count in [100, 3000] {
      let base = CountingStore(base: MemoryStore<[UInt8]>())
      let notes = try await openNotes(base)
      try await notes.apply(
        ChangeBatch((0..<count).map { .set(StoreKey("\($0)"), Note(title: "\($0)", tags: ["x", "y"])) }))
      try await base.base.setValue([0], forKey: "v/50")
      base.reset()
      try await notes.setValue(Note(title: "new", tags: ["x"]), forKey: "50")
      readCounts.append(base.readCount)
      try await notes.expectConsistent()
    }
    #expect(readCounts[0] == readCounts[1] && readCounts[0] < 20)
  }
}

/// A store that counts the entries, values and keys that are read from its base.
private struct CountingStore<Base: DataStore>: PassingStore {
  let base: Base
  private let count = SharedCount()

  init(base: Base) {
    self.base = base
  }

  var readCount: Int { count.value.withLock { $0 } }

  func reset() { count.value.withLock { $0 = 0 } }

  private func counting<Element>(_ elements: [Element]) -> [Element] {
    count.value.withLock { $0 += max(1, elements.count) }
    return elements
  }

  func value(forKey key: StoreKey) async throws -> Base.Value? {
    counting([try await base.value(forKey: key)])[0]
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Base.Value?] {
    counting(try await base.values(forKeys: keys))
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Base.Value>] {
    counting(try await base.entries(in: range, limit: limit, order: order))
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    counting(try await base.keys(in: range, limit: limit, order: order))
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    _ = counting(keys)
    return try await base.update(deciding: keys, body)
  }
}

private final class SharedCount: Sendable {
  let value = Locked(0)
}
#endif
