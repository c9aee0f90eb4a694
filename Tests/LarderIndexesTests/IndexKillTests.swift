#if LMDB
import Foundation
import Larder
import LarderCBOR
import LarderIndexes
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// Processes that are killed while they write and rebuild indexes.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes.
@Suite struct IndexKillTests {
  private static let noteCount = 1000

  /// Opens the notes with an index whose version changes, so it has to be rebuilt.
  fileprivate static func open(_ path: String, version: Int) async throws -> IndexedStore<LMDBStore<[UInt8]>, Note> {
    let byTag = StoreIndex<Note>("tag", version: version, keys: Note.tagKeys)
    return try await LMDBStore(path: path, codec: .raw, durability: .buffered)
      .indexed(by: [byTag, Note.byTitle], codec: .cbor(Note.self))
  }

  /// Writes and rebuilds without end.
  fileprivate static func work(_ path: String, version: Int, rebuilds: Bool, seed: UInt64) async throws {
    let notes = try await open(path, version: version)
    try await withThrowingTaskGroup(of: Void.self) { group in
      if rebuilds {
        group.addTask {
          while true {
            try await notes.rebuildIndexes()
            try await notes.rebuildIndexes(fromScratch: true)
          }
        }
      }
      for task in 0..<2 {
        group.addTask {
          var generator = SeededGenerator(seed: seed &+ UInt64(task))
          while true {
            // Two notes exchange their titles, so that each title always belongs to one note.
            let keys = Set((0..<2).map { _ in StoreKey(integer: Int.random(in: 0..<noteCount, using: &generator)) })
            let tags = ["tag\(Int.random(in: 0..<4, using: &generator))"]
            try await notes.update(Array(keys)) { slots in
              if slots.count == 2 { slots.swapAt(0, 1) }
              slots[0]?.tags = tags
              slots[0]?.created += 1
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Ends this process by `SIGKILL` after a number of microseconds.
  fileprivate static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  @Test func `values and indexes outlive killed processes`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed index writers")
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let titles = (0..<IndexKillTests.noteCount).map { "title \($0)" }
    let notes = try await IndexKillTests.open(path, version: 1)
    try await notes.apply(
      ChangeBatch(titles.enumerated().map { .set(StoreKey(integer: $0), Note(title: $1, tags: ["x", "y"])) }))
    try await notes.close()
    var incomplete = 0
    for round in 0..<ConformanceSuite.killsOfProcess {
      let rebuilds = !round.isMultiple(of: 3)
      let version = rebuilds ? round + 2 : 1
      let (delay, taskSeed) = (UInt32.random(in: 1_000..<80_000, using: &generator), generator.next())
      // Without rebuilds, the process begins with complete indexes.
      let before = try await IndexKillTests.open(path, version: version)
      if !rebuilds { try await before.rebuildIndexes() }
      try await before.close()
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [
          path = path as String, version = version as Int, rebuilds = rebuilds as Bool, delay = delay as UInt32,
          taskSeed = taskSeed as UInt64
        ] in
        IndexKillTests.die(after: delay)
        try await IndexKillTests.work(path, version: version, rebuilds: rebuilds, seed: taskSeed)
      }
      let comment: Comment = "seed \(seed), round \(round), killed after \(delay) µs"
      let after = try await IndexKillTests.open(path, version: version)
      let unfinished = try await after.incompleteIndexes()
      if !rebuilds { #expect(unfinished == [], comment) }
      if !unfinished.isEmpty { incomplete += 1 }
      // Complete indexes agree with the values, and every value can be read.
      let findings = try await after.verifyIndexes().findings
      #expect(
        findings.allSatisfy { $0.message.contains("not complete") } && findings.count == unfinished.count, comment)
      #expect(try await Set(after.entries(in: .all, limit: .max).map(\.value.title)) == Set(titles), comment)
      try await after.rebuildIndexes()
      #expect(try await after.incompleteIndexes() == [], comment)
      #expect(try await after.verifyIndexes() == VerificationReport(entryCount: titles.count), comment)
      try await after.close()
    }
    // Most of the processes die during a rebuild.
    if ConformanceSuite.killsOfProcess >= 20 { #expect(incomplete * 4 > ConformanceSuite.killsOfProcess) }
  }
}
#endif
