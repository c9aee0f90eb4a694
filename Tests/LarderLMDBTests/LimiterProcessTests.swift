#if LMDB
import Foundation
import Larder
import LarderLMDB
import TestSupport
import Testing

/// Limiters of several processes that share a store.
@Suite struct LimiterProcessTests {
  private static let rate = RateLimit(400, per: .seconds(1), burst: 5)

  private static func openLimiter(
    _ path: String, _ configuration: LimiterConfiguration, time: SharedClock = .boot
  ) async throws -> StoreLimiter {
    let store = try await LMDBStore<[UInt8]>(path: path, codec: .raw, durability: .buffered)
    return try StoreLimiter(store, key: "limit", configuration: configuration, time: time)
  }

  /// Takes permits one after another, and notes the time of each start, and the times between which the permit was held.
  fileprivate static func work(_ path: String, _ log: String, count: Int) async throws {
    let limiter = try await openLimiter(
      path, LimiterConfiguration(concurrency: 2, rate: rate, pollInterval: .milliseconds(1)))
    var lines = ""
    for _ in 0..<count {
      let (permit, start, end) = try await holdPermit(of: limiter)
      lines += "\(permit.time.latest) \(start) \(end)\n"
    }
    try lines.write(toFile: log, atomically: true, encoding: .utf8)
  }

  private static func holdPermit(of limiter: StoreLimiter) async throws -> (LimiterPermit, Int64, Int64) {
    let permit = try await limiter.acquire()
    return try await permit.holding {
      let start = try await SharedClock.boot.reading().latest
      await Task.yield()
      return (permit, start, try await SharedClock.boot.reading().latest)
    }
  }

  @Test func `three processes together keep the limits`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    try await withThrowingTaskGroup { group in
      for process in 0..<3 {
        let log = folder.path("log \(process)")
        group.addTask {
          await #expect(processExitsWith: .success) { [path = path as String, log = log as String] in
            try await LimiterProcessTests.work(path, log, count: 60)
          }
        }
      }
      try await group.waitForAll()
    }
    let lines = try (0..<3).flatMap { process in
      try String(contentsOfFile: folder.path("log \(process)"), encoding: .utf8).split(separator: "\n")
        .map { $0.split(separator: " ").compactMap { Int64($0) } }
    }
    #expect(lines.count == 180)
    let starts = lines.map { $0[0] }.sorted()
    for (first, time) in starts.enumerated() {
      for last in first..<starts.count {
        let most = 5 + Double(starts[last] - time) * 400 / 1e9
        #expect(Double(last - first + 1) <= most)
      }
    }
    // The holders at the beginning of each, which is one of them.
    for line in lines { #expect(lines.count { $0[1] <= line[1] && line[1] < $0[2] } <= 2) }
  }

  /// Takes a permit and dies with it.
  fileprivate static func crash(_ path: String) async throws {
    let limiter = try await openLimiter(path, LimiterConfiguration(concurrency: 1), time: clock(at: 0))
    let permit = try await limiter.acquire()
    kill(getpid(), SIGKILL)
    try await permit.release()
  }

  private static func clock(at seconds: Int64) -> SharedClock {
    SharedClock(spansHosts: false) { ClockReading(origin: 0, nanoseconds: seconds * 1_000_000_000) }
  }

  @Test func `the permit of a killed process comes back after its lease`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      try await LimiterProcessTests.crash(path)
    }
    for (seconds, isGranted) in [(29 as Int64, false), (31, true)] {
      let limiter = try await Self.openLimiter(
        path, LimiterConfiguration(concurrency: 1), time: Self.clock(at: seconds))
      #expect(try await (limiter.tryAcquire() != nil) == isGranted)
      try await limiter.base.close()
    }
  }
}
#endif
