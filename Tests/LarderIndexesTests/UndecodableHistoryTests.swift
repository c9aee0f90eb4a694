#if LMDB
import Larder
import LarderIndexes
import LarderTesting
import TestSupport
import Testing

/// Returns the key of a value in the base.
private func storedKey(_ key: StoreKey) -> StoreKey { StoreKey(bytes: Array("v/".utf8) + key.bytes) }

/// Rebuilds that are interrupted, and rebuilds beside writers, with values that cannot be decoded.
@Suite struct UndecodableHistoryTests {
  private static func tags(version: Int) -> StoreIndex<Note> { StoreIndex("tag", version: version, keys: Note.tagKeys) }

  /// Every operation of a rebuild fails once, and a program that can decode all values completes it.
  @Test func `a rebuild with undecodable values continues where it failed`() async throws {
    let count = try await Self.rebuild(failingAt: nil)
    for number in 1...count {
      for moment in [StoreFault.Moment.before, .after] { _ = try await Self.rebuild(failingAt: (number, moment)) }
    }
  }

  /// Rebuilds an index of 200 values, while the operation with a number fails.
  ///
  /// Values cannot be decoded in both slices. Some of them are remembered from an earlier rebuild.
  ///
  /// - Returns: The number of operations.
  private static func rebuild(failingAt failure: (number: Int, StoreFault.Moment)?) async throws -> Int {
    let memory = MemoryStore<[UInt8]>()
    let plain = try await openNotes(memory, by: [Note.byTitle])
    let keys = (0..<200).map { StoreKey("\(1000 + $0)") }
    try await plain.apply(ChangeBatch(keys.indices.map { .set(keys[$0], Note(title: "\($0)", tags: ["x"])) }))
    let saved = try keys.map { try memory.value(forKey: storedKey($0)) }
    for key in [keys[3], keys[150]] { try await memory.setValue([0], forKey: storedKey(key)) }
    try await openNotes(memory, by: [tags(version: 1), Note.byTitle]).rebuildIndexes()
    // One of the remembered values can be decoded again, and two others cannot.
    try await memory.setValue(try #require(saved[3]), forKey: storedKey(keys[3]))
    for key in [keys[4], keys[151]] { try await memory.setValue([0], forKey: storedKey(key)) }

    let base = memory.faulty()
    let notes = try await openNotes(base, by: [tags(version: 2), Note.byTitle])
    let start = base.operationCount
    if let (number, moment) = failure { base.schedule(.error(.ioFailed, moment), number: number) }
    do {
      let report = try await notes.rebuildIndexes()
      #expect(failure == nil && report.findings.map(\.key) == [keys[4], keys[150], keys[151]])
    } catch StoreError.Code.ioFailed {
      #expect(failure != nil)
    }
    let count = base.operationCount - start
    let comment = "\(String(describing: failure))"
    let next = try await openNotes(memory, by: [tags(version: 2), Note.byTitle])
    let report = try await next.rebuildIndexes()
    #expect(report.findings.map(\.key) == [keys[4], keys[150], keys[151]], "\(comment)")
    await expectStoreError(.indexIncomplete) { try await next.keys(tagged: "x") }
    for number in [4, 150, 151] {
      try await memory.setValue(try #require(saved[number]), forKey: storedKey(keys[number]))
    }
    #expect(try await next.rebuildIndexes() == VerificationReport(entryCount: 3), "\(comment)")
    try await next.expectConsistent(comment)
    // A list, a title and a tag for each value, and the catalog.
    #expect(try memory.count(in: .prefix("i/")) == 601, "\(comment)")
    return count
  }

  /// Two programs rebuild and write, and values are damaged in between, without the knowledge of either.
  @Test func `writers and rebuilds agree about damaged values`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "damaged values")
    for round in 0..<ConformanceSuite.roundsOfProcess {
      let memory = MemoryStore<[UInt8]>()
      var plan = FaultPlan(seed: generator.next())
      plan.schedule(.yields(upTo: 4), probability: 1)
      let base = memory.faulty(plan: plan)
      let first = try await openNotes(base, by: [Note.byTitle])
      try await first.apply(
        ChangeBatch((0..<150).map { .set(StoreKey("\(1000 + $0)"), Note(title: "\($0)", tags: ["x"])) }))
      let indexes = [
        Self.tags(version: 2), StoreIndex<Note>("title", version: 2, isUnique: true) { _, note in [[note.title]] },
      ]
      let programs = [try await openNotes(base, by: indexes), try await openNotes(base, by: indexes)]
      let seeds = (0..<4).map { _ in generator.next() }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for program in programs {
          group.addTask {
            for _ in 0..<3 { try await program.rebuildIndexes() }
          }
        }
        for (task, seed) in seeds.enumerated() {
          group.addTask {
            var generator = SeededGenerator(seed: seed)
            for step in 0..<30 {
              try await Self.write(programs[task % 2], memory, title: "\(task)/\(step)", using: &generator)
            }
          }
        }
        try await group.waitForAll()
      }
      let comment = "seed \(seed), round \(round)"
      let last = try await openNotes(memory, by: indexes)
      let findings = try await last.rebuildIndexes(fromScratch: round.isMultiple(of: 3)).findings
      #expect(try await last.incompleteIndexes().isEmpty == findings.isEmpty, "\(comment)")
      for finding in findings { try await last.removeValue(forKey: try #require(finding.key)) }
      try await last.rebuildIndexes()
      // Values that were damaged after they had been indexed.
      for finding in try await last.verifyIndexes().findings {
        try await last.removeValue(forKey: try #require(finding.key, "\(comment): \(finding)"))
      }
      try await last.expectConsistent(comment)
      let valueCount = try await last.count()
      #expect(try memory.count(in: .prefix("i/e")) == valueCount, "\(comment)")
    }
  }

  private static func write<Base>(
    _ notes: IndexedStore<Base, Note>, _ memory: MemoryStore<[UInt8]>, title: String,
    using generator: inout SeededGenerator
  ) async throws {
    let key = StoreKey("\(1000 + Int.random(in: 0..<160, using: &generator))")
    do {
      switch Int.random(in: 0..<7, using: &generator) {
      case 0: try await notes.removeValue(forKey: key)
      case 1: try await notes.removeAll(in: .only(key))
      case 2: try await notes.update(key) { $0?.created += 1000 }
      case 3: try await memory.update(storedKey(key)) { value in if value != nil { value = [0] } }
      default: try await notes.setValue(Note(title: title, tags: ["x", "y"]), forKey: key)
      }
    } catch let error as StoreError {
      // An update needs the old value, and a unique index all the titles.
      #expect([.indexIncomplete, .undecodable, .corrupted].contains(error.code), "\(error)")
    }
  }
}
#endif
