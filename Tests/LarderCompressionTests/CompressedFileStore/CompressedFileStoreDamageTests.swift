#if Compression
import Larder
import LarderCompression
import LarderTesting
import TestSupport
import Testing

/// Files of which a bit or the end is other than it was written.
@Suite struct CompressedFileStoreDamageTests {
  typealias State = [StoreKey: JSONText]

  /// A file, and what it should hold.
  struct Sample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let content: [UInt8]
    /// What it held after each write, the newest last.
    var states: [State]
    /// The keys that were written at once, each time.
    let groups: [Set<StoreKey>]

    var state: State { states.last ?? [:] }
  }

  private static func open(_ disk: SimulatedFileSystem) async throws -> CompressedFileStore<JSONText> {
    try await CompressedFileStore(path: "/s.gz", codec: .jsonText, fileSystem: disk)
  }

  /// A few entries, of which some are removed again.
  ///
  /// - Parameters:
  ///   - isCompacted: Whether the first half is compacted before the other is written.
  ///   - isClosed: Whether the store was closed.
  static func sample(isCompacted: Bool, isClosed: Bool) async throws -> Sample {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await open(disk)
    var states: [State] = [[:]]
    var groups: [Set<StoreKey>] = []
    func apply(_ changes: [Change<JSONText>]) async throws {
      try await store.apply(ChangeBatch(changes))
      groups.append(Set(changes.compactMap(\.key)))
      let entries = try store.entries(in: .all, limit: .max, order: .ascending)
      states.append(Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) }))
    }
    try await apply([.set("a", JSONText("1")), .set("b", JSONText("[2]"))])
    try await apply([.set("c", JSONText("3")), .remove("b"), .set("e", JSONText("5"))])
    if isCompacted {
      try await store.information.maintenance?.compact()
      groups = [["a", "c", "e"]]
      states = [states[2]]
    }
    try await apply([.set("a", JSONText("\"new\"")), .set("d", JSONText("4"))])
    try await apply([.removeAll("e"...), .set("f", JSONText("6"))])
    if isClosed { try await store.close() }
    let content = try #require(disk.content(at: "/s.gz"))
    return Sample(
      testDescription: "\(isCompacted ? "compacted" : "appended"), \(isClosed ? "closed" : "left open")",
      content: content, states: states, groups: groups)
  }

  static let samples: [(isCompacted: Bool, isClosed: Bool)] = [
    (false, true), (false, false), (true, true), (true, false),
  ]

  /// What a store shows: values, and the keys that are lost.
  private func shown(
    by store: CompressedFileStore<JSONText>, of keys: some Sequence<StoreKey>
  ) throws -> (state: State, lost: Set<StoreKey>) {
    var state: State = [:]
    var lost: Set<StoreKey> = []
    for key in keys {
      do {
        state[key] = try store.value(forKey: key)
      } catch let error as StoreError where error.code == .corrupted {
        #expect(error.key == key && error.underlying is DamagedBlockError)
        lost.insert(key)
      }
    }
    return (state, lost)
  }

  @Test(arguments: samples) func everyBitThatIsNotAsItWasWrittenIsFound(
    _ isCompacted: Bool, _ isClosed: Bool
  ) async throws {
    let sample = try await Self.sample(isCompacted: isCompacted, isClosed: isClosed)
    let keys = Set(sample.groups.joined())
    // Every one of the file that has all kinds of blocks, and some of the others.
    for bit in stride(from: 0, to: sample.content.count * 8, by: isCompacted && isClosed ? 1 : 11) {
      var content = sample.content
      content[bit / 8] ^= 1 << (bit % 8)
      let disk = SimulatedFileSystem(seed: 1)
      try disk.place(content, at: "/s.gz")
      let context: Comment = "byte \(bit / 8), bit \(bit % 8)"
      let store = try await Self.open(disk)
      let (state, lost) = try shown(by: store, of: keys)
      let maintenance = try #require(store.information.maintenance)
      let report = try await maintenance.verify()
      let torn = try await maintenance.statistics().details.first { $0.name == "tornBytes" }?.value ?? 0

      #expect(!report.findings.isEmpty || torn > 0, context)
      // The last batch before a crash is all that can be taken for torn.
      let allowed = torn > 0 && !isClosed ? sample.states.suffix(2) : [sample.state]
      #expect(allowed.contains { $0.filter { !lost.contains($0.key) } == state }, context)
      #expect(lost.isEmpty || sample.groups.contains { lost.isSubset(of: $0) }, context)
      if !lost.isEmpty {
        // Of a base it is said from which key on.
        let named = report.findings.filter { $0.place.contains("byte") }.compactMap(\.key)
        #expect(named.contains(where: lost.contains) || isCompacted && !named.isEmpty, context)
        // It reads nothing for that, so one bit of a byte will do.
        if bit.isMultiple(of: 8) {
          await #expect(throws: StoreError.self, context) { try await maintenance.compact() }
        }
      }
      try await store.close()
    }
  }

  @Test(arguments: samples) func whereverTheFileIsCutABeginningIsThere(
    _ isCompacted: Bool, _ isClosed: Bool
  ) async throws {
    let sample = try await Self.sample(isCompacted: isCompacted, isClosed: isClosed)
    let keys = Set(sample.groups.joined())
    var found: Set<Int> = []
    var refused = 0
    for count in 0...sample.content.count {
      let disk = SimulatedFileSystem(seed: 1)
      try disk.place(Array(sample.content.prefix(count)), at: "/s.gz")
      do {
        let store = try await Self.open(disk)
        let (state, lost) = try shown(by: store, of: keys)
        if lost.isEmpty {
          let index = sample.states.lastIndex(of: state)
          #expect(index != nil, "cut to \(count) bytes")
          found.insert(index ?? -1)
        } else {
          // Only of a base anything can be missing, and the log behind it is gone then.
          #expect(isCompacted && sample.states[0].filter { !lost.contains($0.key) } == state, "cut to \(count) bytes")
        }
        // What is left of a log is a store to be written to; of a base only what is not lost.
        try await store.setValue(JSONText("9"), forKey: "new")
        #expect(try store.value(forKey: "new") == JSONText("9"))
        try await store.close()
      } catch let error as StoreError where error.operation == .open {
        #expect(error.code == .corrupted || error.code == .unrecognizedFormat)
        #expect(disk.content(at: "/s.gz")?.count == count, "it was left as it was")
        refused += 1
      }
    }
    #expect(found == Set(0..<sample.states.count))
    #expect(refused > 20 && refused < 150, "only a head that is incomplete is refused: \(refused)")
  }

  @Test func whatWasLostIsMendedByWritingItAnew() async throws {
    let sample = try await Self.sample(isCompacted: true, isClosed: true)
    let disk = SimulatedFileSystem(seed: 1)
    var content = sample.content
    let place = try #require(content.indices.first { content[$0...].starts(with: "{\"set\":\"d\"".utf8) })
    content[place + 3] ^= 1
    try disk.place(content, at: "/s.gz")
    let store = try await Self.open(disk)
    let maintenance = try #require(store.information.maintenance)
    #expect(try store.keys(in: .all, limit: .max, order: .ascending) == ["a", "c", "d", "f"])
    #expect(try store.value(forKey: "c") == JSONText("3"))
    let error = await #expect(throws: StoreError.self) { try await maintenance.compact() }
    #expect(error?.code == .corrupted && error?.key == "a")
    #expect(disk.content(at: "/s.gz")?.starts(with: content.dropLast(200)) == true)
    await expectStoreError(.corrupted) { try await maintenance.backup(to: "/compact.gz", compacting: true) }
    #expect(disk.content(at: "/compact.gz") == nil)
    try await maintenance.backup(to: "/whole.gz")
    let copy = try await CompressedFileStore(path: "/whole.gz", codec: .jsonText, fileSystem: disk)
    #expect(try copy.value(forKey: "c") == JSONText("3"), "what is damaged here is damaged in the copy, and no more")
    expectStoreError(.corrupted) { try copy.value(forKey: "a") }
    try await copy.close()
    try await store.apply([.set("a", JSONText("1")), .remove("d")])
    try await maintenance.compact()
    #expect(try await maintenance.verify().findings.isEmpty)
    try await store.close()
    let again = try await Self.open(disk)
    #expect(try again.entries(in: .all, limit: .max, order: .ascending).map(\.key) == ["a", "c", "f"])
  }

  @Test func nothingThatIsLostDisappearsWithACompaction() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await Self.open(disk)
    for number in 0..<9 {
      let value = JSONText(string: String(repeating: "\(number)", count: 20_000))
      try await store.setValue(value, forKey: StoreKey("key \(number)"))
    }
    try await store.information.maintenance?.compact()
    try await store.close()
    var content = try #require(disk.content(at: "/s.gz"))
    // The first block of the base, header and all.
    func size(at start: Int) -> Int { Int(content[start + 16]) + Int(content[start + 17]) << 8 + 1 }
    let block = size(at: 0)..<size(at: 0) + size(at: size(at: 0))
    content.replaceSubrange(block, with: [UInt8](repeating: 0, count: block.count))
    try disk.place(content, at: "/s.gz")
    let again = try await Self.open(disk)
    let maintenance = try #require(again.information.maintenance)
    expectStoreError(.corrupted) { try again.value(forKey: "key 0") }
    #expect(try again.value(forKey: "key 8") != nil)
    expectStoreError(.corrupted) { try again.keys(in: .all, limit: .max, order: .ascending) }
    await expectStoreError(.corrupted) { try await maintenance.compact() }
    await expectStoreError(.corrupted) { try await maintenance.backup(to: "/copy.gz", compacting: true) }
    #expect(disk.content(at: "/copy.gz") == nil && disk.content(at: "/s.gz")?.starts(with: content) == true)
  }

  @Test func aPageOfZerosInALongLogIsDamage() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await Self.open(disk)
    for number in 0..<100 { try await store.setValue(JSONText("\(number)"), forKey: StoreKey("key \(number)")) }
    try await store.close()
    var content = try #require(disk.content(at: "/s.gz"))
    content.replaceSubrange(2_000..<3_000, with: [UInt8](repeating: 0, count: 1_000))
    try disk.place(content, at: "/s.gz")
    let again = try await Self.open(disk)
    // What was written behind it is known; what came before may have been overwritten by what is lost.
    #expect(try again.value(forKey: "key 99") == JSONText("99"))
    let (_, lost) = try shown(by: again, of: ["key 0", "key 20", "never written"])
    #expect(lost == ["key 0", "key 20", "never written"])
    #expect(throws: StoreError.self) { try again.count(in: .all) }
    try await again.removeAll(in: .all)
    #expect(try again.count(in: .all) == 0)
  }
}
#endif
