#if LMDB
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// Kills processes while they copy an environment.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes for each format, in twos.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct MigrationInterruptionTests {
  private static let formats = DataFileFormat.all.filter { ExaminedImage.obstacle($0) == nil }

  private let folder: TemporaryFolder
  private var old: String { folder.path("old") }
  private var new: String { folder.path("new") }

  init() throws {
    folder = try TemporaryFolder()
  }

  private func checkNewEnvironment(_ comment: Comment) async throws {
    let store = try await LMDBStore<[UInt8]>(path: new, codec: .raw, access: .readOnly, createsIfMissing: false)
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    try await store.close()
    #expect(Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) }) == ExaminedImage.entries, comment)
  }

  /// Ends this process by `SIGKILL` after a number of microseconds.
  fileprivate static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  @Test(arguments: formats) func `a killed migration leaves the old or the whole new environment`(
    _ format: DataFileFormat
  )
    async throws
  {
    try await ExaminedImage.create(format, at: old)
    let before = try Data(contentsOf: URL(filePath: old + "/data.mdb"))
    let clock = ContinuousClock()
    let duration = try await clock.measure { _ = try await LMDBEnvironment.migrate(from: old, to: new) }
    try FileManager.default.removeItem(atPath: new)
    let longest = UInt32(clamping: max(1000, Int(1.3 * (duration / .microseconds(1)))))
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "killed migration \(format.library)")
    var (interrupted, completed) = (0, 0)
    for round in 0..<2 * ConformanceSuite.killsOfProcess {
      let delay = UInt32.random(in: 0..<longest, using: &random)
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [old = old as String, new = new as String, delay = delay as UInt32] in
        MigrationInterruptionTests.die(after: delay)
        _ = try await LMDBEnvironment.migrate(from: old, to: new)
        try await Task.sleep(for: .seconds(60))
      }
      let comment: Comment = "seed \(seed), round \(round), killed after \(delay) µs"
      #expect(try Data(contentsOf: URL(filePath: old + "/data.mdb")) == before, comment)
      let left = try folder.names.filter { $0.contains(".larder-tmp-") }
      #expect(try folder.names.filter { !$0.contains(".larder-tmp-") && !["old", "new"].contains($0) } == [], comment)
      if !left.isEmpty { interrupted += 1 }
      if FileManager.default.fileExists(atPath: new) {
        completed += 1
        try await checkNewEnvironment(comment)
        try FileManager.default.removeItem(atPath: new)
      } else {
        await expectStoreError(.notFound) { try await LMDBEnvironment(path: new, createsIfMissing: false) }
      }
      // Again from the start.
      _ = try await LMDBEnvironment.migrate(from: old, to: new)
      try await checkNewEnvironment(comment)
      #expect(try folder.names == ["new", "old"], comment)
      try FileManager.default.removeItem(atPath: new)
    }
    if !TestDepth.isShort {
      #expect(interrupted > 0 && completed > 0, "\(interrupted) interrupted, \(completed) completed")
    }
  }
}
#endif
