#if Compression
import Larder
import LarderCompressedFile
import LarderTesting
import TestSupport
import Testing

/// Files with flipped bits or a truncated end.
@Suite struct CompressedFileStoreDamageTests {
  typealias State = [StoreKey: JSONText]

  /// A file and its expected content.
  struct Sample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let content: [UInt8]
    /// The content after each write, the newest last.
    var states: [State]
    /// The keys of each batch.
    let groups: [Set<StoreKey>]

    var state: State { states.last ?? [:] }
  }

  private static func open(_ disk: SimulatedFileSystem) async throws -> CompressedFileStore<JSONText> {
    try await CompressedFileStore(path: "/s.gz", codec: .jsonText, fileSystem: disk)
  }

  /// Creates a file with a few entries, some of which are removed again.
  ///
  /// - Parameters:
  ///   - isCompacted: A Boolean value that indicates whether the first half is compacted before the other half is
  ///     written.
  ///   - isClosed: A Boolean value that indicates whether the store was closed.
  static func sample(isCompacted: Bool, isClosed: Bool) async throws -> Sample {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await open(disk)
    var states: [State] = [[:]]
    var groups: [Set<StoreKey>] = []
    func apply(_ changes: [BatchChange<JSONText>]) async throws {
      try await store.apply(ChangeBatch(changes))
      groups.append(Set(changes.compactMap(\.key)))
      let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
      states.append(Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) }))
    }
    try await apply([.set("a", JSONText("1")), .set("b", JSONText("[2]"))])
    try await apply([.set("c", JSONText("3")), .remove("b"), .set("e", JSONText("5"))])
    if isCompacted {
      try await store.compact()
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

  /// Returns the values that a store shows, and the keys that are lost.
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

  @Test(arguments: samples) func `every flipped bit is found`(
    _ isCompacted: Bool, _ isClosed: Bool
  ) async throws {
    let sample = try await Self.sample(isCompacted: isCompacted, isClosed: isClosed)
    let keys = Set(sample.groups.joined())
    // Bits of every byte or two in the file that has all kinds of blocks, and some bits of the other files. Fewer bits
    // in a short run. Each run starts elsewhere.
    let distance = (isCompacted && isClosed ? 11 : 53) * (TestDepth.isShort ? 5 : 1)
    let first = TestDepth.start(distance: distance, of: "bits \(sample.testDescription)")
    for bit in stride(from: first, to: sample.content.count * 8, by: distance) {
      var content = sample.content
      content[bit / 8] ^= 1 << (bit % 8)
      let disk = SimulatedFileSystem(seed: 1)
      try disk.place(content, at: "/s.gz")
      let context: Comment = "byte \(bit / 8), bit \(bit % 8)"
      let store = try await Self.open(disk)
      let (state, lost) = try shown(by: store, of: keys)
      let report = try await store.verify()
      let torn = try await store.storeStatistics().details.first { $0.name == "tornBytes" }?.value ?? 0

      #expect(!report.findings.isEmpty || torn > 0, context)
      // Only the last batch before a crash can look torn.
      let allowed = torn > 0 && !isClosed ? sample.states.suffix(2) : [sample.state]
      #expect(allowed.contains { $0.filter { !lost.contains($0.key) } == state }, context)
      // This close to the end of an open file, the notes are missing.
      #expect(lost.isEmpty || !isClosed || sample.groups.contains { lost.isSubset(of: $0) }, context)
      if !lost.isEmpty {
        // Damage in a base is reported with the first key of the range.
        let named = report.findings.filter { $0.place.contains("byte") }.compactMap(\.key)
        // Unknown changes can concern any key, so they are one finding without a key.
        let isUnknown = report.findings.contains { $0.message.contains("its changes are unknown") }
        #expect(named.contains(where: lost.contains) || isCompacted && !named.isEmpty || isUnknown, context)
        // This does not read the damaged bytes, so a few bits suffice.
        if bit.isMultiple(of: 8) {
          await #expect(throws: StoreError.self, context) { try await store.compact() }
        }
      }
      try await store.close()
    }
  }

  @Test(arguments: samples) func `any truncation leaves a prefix or is reported`(
    _ isCompacted: Bool, _ isClosed: Bool
  ) async throws {
    let sample = try await Self.sample(isCompacted: isCompacted, isClosed: isClosed)
    let keys = Set(sample.groups.joined())
    var found: Set<Int> = []
    var refused = 0
    // Every length, or some in a short run. Each run starts elsewhere.
    let distance = TestDepth.isShort ? 12 : 1
    let first = TestDepth.start(distance: distance, of: "lengths \(sample.testDescription)")
    var lengths = Array(stride(from: first, to: sample.content.count, by: distance))
    // Only then, the last batch is there.
    if !isClosed { lengths.append(sample.content.count) }
    for count in lengths {
      let disk = SimulatedFileSystem(seed: 1)
      try disk.place(Array(sample.content.prefix(count)), at: "/s.gz")
      let context: Comment = "cut to \(count) bytes"
      do {
        let store = try await Self.open(disk)
        let (state, lost) = try shown(by: store, of: keys)
        let findings = try await store.verify().findings
        if isClosed {
          // No older value replaces a lost one, and no removed entry is back.
          #expect(!findings.isEmpty && state == sample.state.filter { !lost.contains($0.key) }, context)
        } else if lost.isEmpty {
          let index = sample.states.lastIndex(of: state)
          #expect(index != nil, context)
          found.insert(index ?? -1)
        } else {
          // Entries can only be missing from a base, and the log after it is lost then.
          #expect(isCompacted && sample.states[0].filter { !lost.contains($0.key) } == state, context)
        }
        // The rest is a store that accepts writes.
        try await store.setValue(JSONText("9"), forKey: "new")
        try await store.close()
        let again = try await Self.open(disk)
        #expect(try again.value(forKey: "new") == JSONText("9"), context)
        let after = try shown(by: again, of: keys)
        #expect(after.state == state && after.lost == lost, context)
        try await again.close()
      } catch let error as StoreError where error.operation == .open {
        #expect(error.code == .corrupted || error.code == .unrecognizedFormat)
        #expect(disk.content(at: "/s.gz")?.count == count, "the file is unchanged")
        refused += 1
      }
    }
    if !isClosed { #expect(found == Set(0..<sample.states.count)) }
    #expect((20..<400).contains(refused * distance), "only an incomplete beginning is refused: \(refused)")
  }

  @Test func `bytes after the end are reported and kept`() async throws {
    let sample = try await Self.sample(isCompacted: true, isClosed: true)
    let other = try await Self.sample(isCompacted: false, isClosed: true)
    for foreign in [Array("something else".utf8), other.content, [UInt8](repeating: 0, count: 9000)] {
      let disk = SimulatedFileSystem(seed: 1)
      let content = sample.content + foreign
      try disk.place(content, at: "/s.gz")
      let store = try await Self.open(disk)
      #expect(try shown(by: store, of: ["a", "c", "d", "f"]).state == sample.state)
      #expect(
        try await store.verify().findings.map(\.message).joined().contains("\(foreign.count) bytes") == true)
      try await store.setValue(JSONText("9"), forKey: "new")
      await expectStoreError(.corrupted) { try await store.compact() }
      // Power is lost before any block states that the write was durable.
      disk.losePower()
      disk.restart()
      let again = try await Self.open(disk)
      #expect(try again.value(forKey: "new") == JSONText("9"))
      #expect(try again.count(in: .all) == 5)
      try await again.removeValue(forKey: "new")
      try await again.close()
      #expect(disk.content(at: "/s.gz")?[sample.content.count...].starts(with: foreign) == true)
      let last = try await Self.open(disk)
      #expect(try shown(by: last, of: ["a", "c", "d", "f", "new"]).state == sample.state)
      let findings = try await last.verify().findings
      #expect(findings.contains { $0.message.contains("no store has written") }, "\(findings)")
      try await last.backup(to: "/copy.gz")
      #expect(try await CompressedFileStore(path: "/copy.gz", codec: .jsonText, fileSystem: disk).count(in: .all) == 4)
    }
  }

  @Test func `rewriting a lost entry repairs it`() async throws {
    let sample = try await Self.sample(isCompacted: true, isClosed: true)
    let disk = SimulatedFileSystem(seed: 1)
    var content = sample.content
    let place = try #require(content.indices.first { content[$0...].starts(with: "{\"set\":\"d\"".utf8) })
    content[place + 3] ^= 1
    try disk.place(content, at: "/s.gz")
    let store = try await Self.open(disk)
    #expect(try store.keys(in: .all, limit: .max, order: .ascending) == ["a", "c", "d", "f"])
    #expect(try store.value(forKey: "c") == JSONText("3"))
    let error = await #expect(throws: StoreError.self) { try await store.compact() }
    #expect(error?.code == .corrupted && error?.key == "a")
    #expect(disk.content(at: "/s.gz")?.starts(with: content.dropLast(200)) == true)
    await expectStoreError(.corrupted) { try await store.backup(to: "/compact.gz", compacting: true) }
    #expect(disk.content(at: "/compact.gz") == nil)
    try await store.backup(to: "/whole.gz")
    let copy = try await CompressedFileStore(path: "/whole.gz", codec: .jsonText, fileSystem: disk)
    #expect(try copy.value(forKey: "c") == JSONText("3"), "the copy has the same damage and no more")
    expectStoreError(.corrupted) { try copy.value(forKey: "a") }
    try await copy.close()
    try await store.apply([.set("a", JSONText("1")), .remove("d")])
    try await store.compact()
    #expect(try await store.verify().findings.isEmpty)
    try await store.close()
    let again = try await Self.open(disk)
    #expect(try await again.entries(in: .all, limit: .max, order: .ascending).map(\.key) == ["a", "c", "f"])
  }

  @Test func `lost entries are still reported after a compaction`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await Self.open(disk)
    for number in 0..<9 {
      let value = JSONText(string: String(repeating: "\(number)", count: 20_000))
      try await store.setValue(value, forKey: StoreKey("key \(number)"))
    }
    try await store.compact()
    try await store.close()
    var content = try #require(disk.content(at: "/s.gz"))
    // The size of the first block of the base, including its header. It follows the head and the end-of-file mark.
    func size(at start: Int) -> Int { Int(content[start + 16]) + Int(content[start + 17]) << 8 + 1 }
    let start = size(at: 0) + size(at: size(at: 0))
    let block = start..<start + size(at: start)
    content.replaceSubrange(block, with: [UInt8](repeating: 0, count: block.count))
    try disk.place(content, at: "/s.gz")
    let again = try await Self.open(disk)
    expectStoreError(.corrupted) { try again.value(forKey: "key 0") }
    #expect(try again.value(forKey: "key 8") != nil)
    #expect(try again.keys(in: .all, limit: .max, order: .ascending).count == 9, "notes list the lost keys")
    let error = await expectStoreError(.corrupted) { try await again.entries(in: .all, limit: .max, order: .ascending) }
    let damaged = try #require(error?.underlying as? DamagedBlockError)
    #expect(damaged.keys == .only("key 0") && damaged.block == Int64(start))
    await expectStoreError(.corrupted) { try await again.compact() }
    await expectStoreError(.corrupted) { try await again.backup(to: "/copy.gz", compacting: true) }
    #expect(disk.content(at: "/copy.gz") == nil && disk.content(at: "/s.gz")?.starts(with: content) == true)
  }

  /// Compares a damaged store with the expected content.
  ///
  /// - Parameter allowed: The keys that may be lost.
  private func check(
    _ store: CompressedFileStore<JSONText>, holds state: State, without allowed: Set<StoreKey>, of keys: Set<StoreKey>,
    _ context: Comment
  ) async throws -> Int {
    let (found, lost) = try shown(by: store, of: keys)
    #expect(lost.isSubset(of: allowed), context)
    #expect(found == state.filter { !lost.contains($0.key) }, context)
    // Counting and listing know the lost keys; a walk continues after them.
    #expect(try store.count(in: .all) == found.count + lost.count, context)
    #expect(try Set(store.keys(in: .all, limit: .max, order: .ascending)) == Set(found.keys).union(lost), context)
    var walked: State = [:]
    var start: StoreKey = ""
    var end: StoreKey?
    while true {
      do {
        let page = try await store.entries(in: KeyRange(from: start, upTo: end), limit: 50, order: .ascending)
        for entry in page { walked[entry.key] = entry.value }
        if let last = page.last {
          start = last.key.successor
        } else if let next = end {
          (start, end) = (next, nil)
        } else {
          break
        }
      } catch let error as StoreError {
        let damaged = try #require(error.underlying as? DamagedBlockError)
        if damaged.keys.lowerBound > start {
          end = damaged.keys.lowerBound
        } else {
          guard let next = damaged.keys.upperBound else { break }
          (start, end) = (next, nil)
        }
      }
    }
    #expect(walked == found, context)
    return lost.count
  }

  @Test func `a page of zeros in a long log loses only its entries`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await Self.open(disk)
    var state: State = [:]
    var sizes: [(key: StoreKey, end: Int)] = []
    for number in 0..<300 {
      let key = StoreKey("key \(number % 170)")
      if number % 7 == 3 {
        try await store.removeValue(forKey: key)
        state[key] = nil
      } else {
        state[key] = try JSONText("\(number)")
        try await store.setValue(JSONText("\(number)"), forKey: key)
      }
      sizes.append((key, disk.content(at: "/s.gz")?.count ?? 0))
    }
    let open = try #require(disk.content(at: "/s.gz"))
    try await store.close()
    let closed = try #require(disk.content(at: "/s.gz"))
    let keys = Set(sizes.map(\.key))
    var lostCount = 0
    for content in [open, closed] {
      for page in stride(from: 0, to: content.count, by: 4096) {
        // In the last 8 KiB of an open file, any entry may be lost.
        guard content == closed || page + 12_288 < content.count else { continue }
        var damaged = content
        for place in page..<min(page + 4096, content.count) { damaged[place] = 0 }
        let disk = SimulatedFileSystem(seed: 1)
        try disk.place(damaged, at: "/s.gz")
        let again = try await Self.open(disk)
        let touched = sizes.indices.filter { index in
          sizes[index].end > page && (index == 0 ? 0 : sizes[index - 1].end) < page + 4096
        }
        let allowed = Set(touched.map { sizes[$0].key })
        let context: Comment = "page at \(page) of \(content.count)"
        let lost = try await check(again, holds: state, without: allowed, of: keys, context)
        lostCount += lost
        // A lost entry stays lost, whatever else is written, until it is rewritten itself.
        try await again.setValue(JSONText("1"), forKey: "another")
        try await again.close()
        var changed = state
        changed["another"] = try JSONText("1")
        let third = try await Self.open(disk)
        let lostThen = try await check(
          third, holds: changed, without: allowed, of: keys.union(["another"]), context)
        #expect(lostThen == lost, context)
        try await third.close()
      }
    }
    #expect(lostCount > 50)
  }
}
#endif
