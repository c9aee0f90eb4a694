#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderJSON
import LarderLMDB
import LarderMirror
import LarderTesting
import TestSupport
import Testing

/// Moves a store that is read and written from a JSON file to LMDB, while its processes are killed.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes, which is at least 20, or 8 in a short run.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct LiveMoveKillTests {
  private static let keyCount = 300
  private static let kills = max(TestDepth.isShort ? 8 : 20, ConformanceSuite.killsOfProcess)

  private static func open(in folder: String) async throws -> MirroredStore<JSONFileStore<Int>, LMDBStore<Int>> {
    try await MirroredStore(
      primary: JSONFileStore<Int>(path: folder + "/store.json", durability: .buffered),
      secondary: LMDBStore<Int>(path: folder + "/store", durability: .buffered))
  }

  private static func key(_ number: Int) -> StoreKey { StoreKey("key\(number)") }

  /// Moves the store in another process, which dies after a delay in microseconds.
  private static func moveAndDie(_ folder: String, _ first: Int, _ delay: Int) async {
    await #expect(processExitsWith: .signal(SIGKILL)) { [folder, first, delay] in
      try await LiveMoveKillTests.move(folder, from: first, dyingAfter: delay)
    }
  }

  /// Writes ever higher values, notes each in the journal once it was acknowledged, reads, and repairs.
  private static func move(_ folder: String, from first: Int, dyingAfter delay: Int) async throws {
    let mirror = try await open(in: folder)
    Thread.detachNewThread {
      usleep(UInt32(delay))
      kill(getpid(), SIGKILL)
    }
    try await withThrowingTaskGroup { group in
      group.addTask {
        let journal = try FileHandle(forWritingTo: URL(filePath: folder + "/journal"))
        try journal.seekToEnd()
        for value in first... {
          let key = key(value % keyCount)
          if value.isMultiple(of: 7) {
            try await mirror.update(key) { $0 = value }
          } else {
            try await mirror.setValue(value, forKey: key)
          }
          try journal.write(contentsOf: Data("\(value)\n".utf8))
        }
      }
      group.addTask {
        while true {
          // To a reader, values only grow.
          let value = try await mirror.value(forKey: key(1)) ?? 0
          guard try await mirror.value(forKey: key(1)) ?? 0 >= value else { exit(1) }
        }
      }
      group.addTask {
        while true { try await mirror.repair(batchSize: 20) }
      }
      try await group.waitForAll()
    }
  }

  @Test func `killed processes lose no acknowledged write`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "LiveMoveKillTests")
    let folder = try TemporaryFolder()
    let store = try await JSONFileStore<Int>(path: folder.path("store.json"), durability: .buffered)
    try await store.apply(ChangeBatch((0..<Self.keyCount).map { .set(Self.key($0), 0) }))
    try await store.close()
    try Data().write(to: URL(filePath: folder.path("journal")))
    func acknowledged() throws -> Int {
      // The last line may be cut.
      let lines = try String(contentsOfFile: folder.path("journal"), encoding: .utf8)
        .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      return lines.last.flatMap { Int($0) } ?? 0
    }
    for round in 0..<Self.kills {
      let first = try acknowledged() + 1
      await Self.moveAndDie(folder.path, first, Int.random(in: 0..<400_000, using: &generator))
      let context: Comment = "seed \(SeededGenerator.seedOfProcess), round \(round)"
      let last = try acknowledged()
      let mirror = try await Self.open(in: folder.path)
      try await Self.check(mirror.primary, upTo: last, context)
      try await mirror.close()
    }

    let mirror = try await Self.open(in: folder.path)
    try await mirror.repair()
    try await mirror.forEachDifference { Issue.record("\($0.key) differs: \($0.kind)") }
    try await mirror.promoteSecondary()
    try await Self.check(mirror.secondary, upTo: acknowledged(), "after the move")
    #expect(try await mirror.count() == Self.keyCount)
    try await mirror.close()
    print("killed \(Self.kills) moves, with \(try acknowledged()) acknowledged writes")
  }

  /// Checks that each key has the last acknowledged value, or one that was being written.
  private static func check(_ store: some DataStore<Int>, upTo last: Int, _ context: Comment) async throws {
    for number in 0..<keyCount {
      let value = try #require(await store.value(forKey: key(number)), context)
      let expected = last - (last - number % keyCount + keyCount) % keyCount
      #expect(value >= max(0, expected) && value <= last + 1, context)
    }
  }
}
#endif
