#if HTTPCache && LMDB
import Foundation
import HTTPCachingRules
import Larder
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Processes that are killed while eight tasks fetch, replace, evict and invalidate bodies of up to 4 MB over LMDB.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes.
@Suite(.timeLimit(.minutes(60))) struct StorageKillTests {
  private static let capacity = 16_000_000

  fileprivate static func open(
    _ path: String, now: @escaping @Sendable () -> Date = { Date.now }
  ) async throws -> ResponseStorage<LMDBStore<[UInt8]>> {
    var options = StorageOptions(capacity: capacity, largestBody: 4_000_000)
    options.now = now
    return try await ResponseStorage(
      try await LMDBStore(path: path, codec: .raw, durability: .buffered), options: options)
  }

  /// Runs the tasks without end, and appends what is done to a file.
  fileprivate static func work(
    _ path: String, log: String, seed: UInt64, after version: Int64, dieAfter microseconds: UInt32
  ) async throws {
    die(after: microseconds)
    let file = Foundation.open(log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    // Without the log, no response would be too old.
    guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

    let workload = StorageWorkload(try await open(path), lengths: 0...4_000_000, after: version) { report in
      // One write, which survives the process when it returns.
      _ = report.line.withCString { write(file, $0, strlen($0)) }
    }
    try await workload.run(seed: seed)
  }

  /// Ends this process by `SIGKILL` after a number of microseconds.
  private static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  @Test func `every response after a kill is whole and not older`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed HTTP caches")
    let folder = try TemporaryFolder()
    let (path, log) = (folder.path("cache"), folder.path("log"))
    var responseCount = 0
    for round in 0..<ConformanceSuite.killsOfProcess {
      let (delay, taskSeed) = (UInt32.random(in: 1_000..<1_000_000, using: &generator), generator.next())
      let version = Int64(round) * 1_000_000
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [
          path = path as String, log = log as String, delay = delay as UInt32, taskSeed = taskSeed as UInt64,
          version = version as Int64
        ] in
        try await StorageKillTests.work(path, log: log, seed: taskSeed, after: version, dieAfter: delay)
      }
      let offset = Locked<TimeInterval>(0)
      let storage = try await StorageKillTests.open(path) { Date.now.addingTimeInterval(offset.withLock { $0 }) }
      let comment: Comment = "seed \(seed), round \(round), killed after \(delay) µs"
      try await storage.expectRecovered(try StorageReport.read(log), comment) { offset.withLock { $0 += 61 } }
      let usage = try await storage.usage()
      #expect(usage.bytes <= StorageKillTests.capacity)
      responseCount += usage.responses
      await storage.settleUses()
      try await storage.base.close()
    }
    print("\(responseCount) responses were read after \(ConformanceSuite.killsOfProcess) kills")
  }
}
#endif
