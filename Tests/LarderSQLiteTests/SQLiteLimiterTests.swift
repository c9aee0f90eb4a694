#if SQLite
import Larder
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Limiters of two store objects that have the same database open.
@Suite struct SQLiteLimiterTests {
  @Test func `two stores together keep the limits and reopen with them`() async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    let rate = RateLimit(10, per: .seconds(1), burst: 4)
    func open() async throws -> StoreLimiter {
      let store = try await SQLiteStore<[UInt8]>(path: folder.path("database"), codec: .raw, durability: .buffered)
      return try StoreLimiter(
        store, key: "limit", configuration: LimiterConfiguration(concurrency: 3, rate: rate), time: .manual(clock),
        clock: clock)
    }
    let limiters = [try await open(), try await open()]
    var (starts, permits) = ([Duration](), [LimiterPermit]())
    for round in 0..<200 {
      if let permit = try await limiters[round % 2].tryAcquire() {
        starts.append(clock.now.offset)
        permits.append(permit)
      }
      #expect(permits.count <= 3)
      if round % 3 == 2, !permits.isEmpty { try await permits.removeFirst().release() }
      clock.advance(by: .milliseconds(17))
    }
    for (first, time) in starts.enumerated() {
      for last in first..<starts.count {
        #expect(Double(last - first + 1) <= 4 + (starts[last] - time) / .seconds(0.1))
      }
    }
    #expect(starts.count > 30)
    for limiter in limiters { try await limiter.base.close() }
    let reopened = try await open()
    var count = permits.count
    while try await reopened.tryAcquire() != nil { count += 1 }
    #expect(count <= 3)
    try await reopened.base.close()
  }
}
#endif
