import Larder
import LarderTesting
import TestSupport
import Testing

/// Limiters whose objects share a store, in many schedules, in which time passes only while nothing else can happen.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct StoreLimiterSchedules {
  /// The store and the clock of one run, and what its tasks count.
  private final class Run<Counts: Sendable>: Sendable {
    let counts: Locked<Counts>
    let clock: ManualClock
    private let store = MemoryStore<[UInt8]>()

    init(_ clock: ManualClock, counting counts: Counts) {
      self.clock = clock
      self.counts = Locked(counts)
    }

    func makeLimiter(_ configuration: LimiterConfiguration) throws -> StoreLimiter {
      try StoreLimiter(
        store, key: "limits/mail", configuration: configuration, time: .manual(clock), clock: clock)
    }
  }

  @Test func `two objects with many callers start at the rate`() async throws {
    let rate = RateLimit(10, per: .seconds(10), burst: 3)
    try await runSchedules("callers of two limiters", share: 0.2, switchesAtLocks: false) { context in
      let run = Run(context.clock, counting: 0)
      let starts = try await withThrowingTaskGroup { group in
        for object in 0..<2 {
          let limiter = try run.makeLimiter(LimiterConfiguration(rate: rate))
          for _ in 0..<20 { group.addTask { (object: object, permit: try await limiter.acquire()) } }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      var counted = RateLimitTests.Starts()
      counted.all = starts.map { ($0.permit.time.latest, 1) }
      let excess = counted.excess(over: rate)
      try check(excess == nil, excess ?? "")
      // The limit is reached, and both objects have their turns.
      let end = context.clock.now.offset
      try check(end >= .seconds(37) && end < .seconds(38), "the last start is at \(end)")
      try check(Set(starts.prefix(20).map(\.object)) == [0, 1], "one object has all of the first starts")
    }
  }

  @Test func `an object with one caller is not starved by one with many`() async throws {
    try await runSchedules("a limiter with one caller", share: 0.2, switchesAtLocks: false) { context in
      let run = Run(context.clock, counting: (busy: 0, other: 0))
      let configuration = LimiterConfiguration(rate: RateLimit(1, per: .seconds(1)))
      let (busy, other) = (try run.makeLimiter(configuration), try run.makeLimiter(configuration))
      try await withThrowingTaskGroup { group in
        for number in 0..<21 {
          group.addTask {
            while !Task.isCancelled {
              _ = try await (number == 0 ? other : busy).acquire()
              run.counts.withLock { if number == 0 { $0.other += 1 } else { $0.busy += 1 } }
            }
          }
        }
        while run.counts.withLock({ $0.other < 10 }) { try await run.clock.sleep(for: .milliseconds(250)) }
        let busyCount = run.counts.withLock(\.busy)
        try check(busyCount <= 60, "\(busyCount) starts of the other object")
        group.cancelAll()
        while let result = await group.nextResult() { _ = result }
      }
    }
  }

  @Test func `no more permits are held than the limit`() async throws {
    try await runSchedules("permits of three limiters", share: 0.2, switchesAtLocks: false) { context in
      let run = Run(context.clock, counting: (running: 0, most: 0))
      try await withThrowingTaskGroup { group in
        for _ in 0..<3 {
          let limiter = try run.makeLimiter(LimiterConfiguration(concurrency: 4))
          for _ in 0..<10 {
            group.addTask {
              try await limiter.withPermit {
                run.counts.withLock { counts in
                  counts.running += 1
                  counts.most = max(counts.most, counts.running)
                }
                // Longer than the lease, which is renewed.
                try await run.clock.sleep(for: .seconds(45))
                run.counts.withLock { $0.running -= 1 }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let most = run.counts.withLock(\.most)
      try check(most == 4, "\(most) permits are held")
      // 30 callers in eight rounds, and less than a round until the others notice a release.
      let end = context.clock.now.offset
      try check(end < .seconds(45 * 9), "the last one ends at \(end)")
    }
  }
}
