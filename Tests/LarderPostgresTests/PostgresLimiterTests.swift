#if Postgres
import Larder
import LarderPostgres
import TestSupport
import Testing

/// Limiters of two objects of a database, by the clock of the server.
@Suite(.limitedParallelism) struct PostgresLimiterTests {
  /// The permits that are held, and the times of all starts.
  private final class Holders: Sendable {
    private struct State {
      var count = 0
      var most = 0
      var starts: [ClockReading] = []
    }

    private let state = Locked(State())

    var most: Int { state.withLock { $0.most } }

    var starts: [ClockReading] { state.withLock { $0.starts } }

    func hold(_ limiter: StoreLimiter) async throws {
      let permit = try await limiter.acquire()
      try await permit.holding {
        state.withLock { state in
          state.count += 1
          state.most = max(state.most, state.count)
          state.starts.append(permit.time)
        }
        await Task.yield()
        state.withLock { $0.count -= 1 }
      }
    }
  }

  private static func open(_ schema: String) async throws -> (PostgresDatabase, PostgresStore<[UInt8]>) {
    let database = try await PostgresDatabase(PostgresServer.shared.connectionString, schema: schema)
    return (database, try await PostgresStore(in: database, codec: .raw))
  }

  @Test func `two databases together keep the limits`() async throws {
    let schema = try await PostgresServer.shared.newSchema()
    let rate = RateLimit(100, per: .seconds(1), burst: 5)
    let holders = Holders()
    try await withThrowingTaskGroup { group in
      for _ in 0..<2 {
        group.addTask {
          let (database, store) = try await Self.open(schema)
          let limiter = try StoreLimiter(
            store, key: "limit",
            configuration: LimiterConfiguration(concurrency: 2, rate: rate, pollInterval: .milliseconds(5)),
            time: database.serverClock)
          try await withThrowingTaskGroup { callers in
            for _ in 0..<25 { callers.addTask { try await holders.hold(limiter) } }
            try await callers.waitForAll()
          }
          await database.close()
        }
      }
      try await group.waitForAll()
    }
    #expect(holders.most <= 2)
    let times = holders.starts.sorted { $0.latest < $1.latest }
    #expect(times.count == 50)
    for (first, time) in times.enumerated() {
      // The windows as wide as they can have been. A start with a slow reading can be earlier than one that was certain before.
      var earliest = time.earliest
      for last in first..<times.count {
        earliest = min(earliest, times[last].earliest)
        let length = Double(times[last].latest - earliest) / 1e9
        #expect(Double(last - first + 1) <= 5 + length * 100)
      }
    }
  }

  @Test func `the clock of the server is one for all hosts`() async throws {
    let (database, store) = try await Self.open(PostgresServer.shared.newSchema())
    let first = try await database.serverClock.reading()
    let second = try await database.serverClock.reading()
    #expect(first.origin == second.origin)
    #expect(first.earliest <= second.earliest)
    // From 2020 to 2100.
    #expect((1_577_836_800_000_000_000...4_102_444_800_000_000_000).contains(first.earliest))
    expectStoreError(.unsupported) {
      try StoreLimiter(store, key: "limit", configuration: LimiterConfiguration(concurrency: 1))
    }
    await database.close()
    await expectStoreError(.closed) { _ = try await database.serverClock.reading() }
  }
}
#endif
