import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCoordination

@Suite struct RateLimiterTests {
  private let clock = ManualClock()
  private let base = MemoryStore<[UInt8]>()

  /// Ten starts in ten seconds, and four at the same moment.
  private func limiter(
    _ base: some DataStore<[UInt8]>, share: Int = 1, origin: UInt128 = 0
  ) throws -> RateLimiter {
    let time = SharedClock(spansHosts: true) { [clock] in
      ClockReading(origin: origin, nanoseconds: clock.now.offset.wholeNanoseconds)
    }
    return try RateLimiter(
      base, prefix: "limits/", limit: RateLimit(10, per: .seconds(10), burst: 4), share: share, time: time,
      clock: clock)
  }

  @Test func `a decision is one commit`() async throws {
    let store = CountedStore(base)
    let limiter = try limiter(store)
    for remaining in [3, 2, 1, 0] {
      let decision = try await limiter.take(forKey: "ada")
      #expect(
        decision
          == RateDecision(
            starts: 1, remaining: remaining, fullAfter: .seconds(4 - remaining), retryAfter: .zero))
    }
    #expect(store.commits == 4)
    let refused = try await limiter.take(forKey: "ada")
    #expect(refused == RateDecision(starts: 0, remaining: 0, fullAfter: .seconds(4), retryAfter: .seconds(1)))
    #expect(store.commits == 4)
    // Another key has a limit of its own.
    #expect(try await limiter.take(4, forKey: "bob").isGranted)
    clock.advance(by: .milliseconds(1500))
    let later = try await limiter.take(forKey: "ada")
    #expect(later == RateDecision(starts: 1, remaining: 0, fullAfter: .milliseconds(3500), retryAfter: .zero))
    #expect(try await limiter.take(forKey: "ada").retryAfter == .milliseconds(500))
  }

  /// An event during the next reading of the clock.
  private final class Delay: Sendable {
    private let body = Locked<(@Sendable () async throws -> Void)?>(nil)

    func set(_ body: @escaping @Sendable () async throws -> Void) {
      self.body.withLock { $0 = body }
    }

    func pass() async throws {
      let body = body.withLock { body in
        defer { body = nil }
        return body
      }
      try await body?()
    }
  }

  /// Returns a limiter whose readings of the clock take their time after the clock has answered.
  private func limiter(delayedBy delay: Delay) throws -> RateLimiter {
    let time = SharedClock(spansHosts: true) { [clock] in
      let now = ClockReading(origin: 0, nanoseconds: clock.now.offset.wholeNanoseconds)
      try await delay.pass()
      return now
    }
    return try RateLimiter(
      base, prefix: "limits/", limit: RateLimit(10, per: .seconds(10), burst: 4), time: time, clock: clock)
  }

  @Test func `a slow reading of the clock uses up one start`() async throws {
    let delay = Delay()
    let (slow, quick) = (try limiter(delayedBy: delay), try limiter(base))
    delay.set { [clock] in clock.advance(by: .seconds(20)) }
    #expect(try await slow.take(forKey: "ada").isGranted)
    // The start can have been at any time of the reading.
    for remaining in [2, 1, 0] { #expect(try await quick.take(forKey: "ada").remaining == remaining) }
    #expect(try await quick.take(forKey: "ada").retryAfter == .seconds(1))
    // A request whose reading is slow is refused only because the burst is used up.
    delay.set { [clock] in clock.advance(by: .seconds(20)) }
    #expect(try await slow.take(forKey: "bob").isGranted)
    delay.set { _ = try await quick.take(forKey: "bob") }
    #expect(try await slow.take(2, forKey: "bob").isGranted)
    #expect(try await !slow.take(forKey: "bob").isGranted)
  }

  @Test func `starts during the reading of the clock keep an entry from being removed or corrected`() async throws {
    let delay = Delay()
    let (slow, quick) = (try limiter(delayedBy: delay), try limiter(base))
    #expect(try await quick.take(forKey: "ada").isGranted)
    delay.set { [clock] in
      clock.advance(by: .seconds(100))
      _ = try await quick.take(4, forKey: "ada")
    }
    #expect(try await slow.removeIdle() == 0)
    #expect(try await !quick.take(forKey: "ada").isGranted)
  }

  @Test func `fields of HTTP`() async throws {
    let limiter = try limiter(base)
    let granted = try await limiter.take(3, forKey: "ada")
    #expect(
      limiter.fields(of: granted).map { "\($0.name): \($0.value)" } == [
        "RateLimit-Policy: \"default\";q=4;w=4", "RateLimit: \"default\";r=1;t=3",
      ])
    let refused = try await limiter.take(2, forKey: "ada")
    // A name from outside cannot end the string.
    #expect(
      limiter.fields(of: refused, policy: "per\"user;x").map { "\($0.name): \($0.value)" } == [
        "RateLimit-Policy: \"peruserx\";q=4;w=4", "RateLimit: \"peruserx\";r=1;t=3", "Retry-After: 1",
      ])
  }

  @Test func `shares save commits`() async throws {
    let store = CountedStore(base)
    let limiter = try limiter(store, share: 4)
    for remaining in [3, 2, 1, 0] {
      let decision = try await limiter.take(forKey: "ada")
      #expect(decision.isGranted)
      #expect(decision.remaining == remaining)
    }
    #expect(store.commits == 1)
    let refused = try await limiter.take(forKey: "ada")
    #expect(refused.retryAfter == .seconds(1))
    // The refusal is remembered, also if the store is cut off.
    store.fail(with: .ioFailed)
    clock.advance(by: .milliseconds(400))
    #expect(try await limiter.take(forKey: "ada").retryAfter == .milliseconds(600))
    store.fail(with: nil)
    clock.advance(by: .milliseconds(1600))
    // Two starts are available, so the share is smaller.
    #expect(try await limiter.take(forKey: "ada").remaining == 1)
    #expect(try await limiter.take(forKey: "ada").isGranted)
    #expect(try await !limiter.take(forKey: "ada").isGranted)
    #expect(store.commits == 2)
  }

  /// The store grants only what the starts of an earlier share do not cover.
  @Test func `a share counts for a larger request`() async throws {
    let limiter = try limiter(base, share: 4)
    #expect(try await limiter.take(forKey: "ada").isGranted)
    let refused = try await limiter.take(4, forKey: "ada")
    #expect(!refused.isGranted)
    #expect(refused.retryAfter == .seconds(1))
    #expect(refused.remaining == 3)
    clock.advance(by: .seconds(1))
    let granted = try await limiter.take(4, forKey: "ada")
    #expect(granted.starts == 4)
    #expect(granted.remaining == 0)
  }

  /// Keys without starts are forgotten first.
  @Test func `many keys do not cost a share`() async throws {
    let store = CountedStore(base)
    let limiter = try limiter(store, share: 4)
    _ = try await limiter.take(forKey: "ada")
    for number in 0..<10_000 { _ = try await limiter.take(4, forKey: StoreKey(integer: number)) }
    let commits = store.commits
    #expect(try await limiter.take(3, forKey: "ada").isGranted)
    #expect(store.commits == commits)
  }

  @Test func `a damaged entry does not stop cleaning`() async throws {
    let limiter = try limiter(base)
    for key: StoreKey in ["a", "c"] { _ = try await limiter.take(forKey: key) }
    try base.apply([.set("limits/b", [1, 2])])
    clock.advance(by: .seconds(1))
    await expectStoreError(.corrupted) { try await limiter.removeIdle() }
    #expect(try base.keys(in: .all, limit: 9, order: .ascending) == ["limits/b"])
  }

  /// Objects that spend shares: a window has at most the limit, and one share more for each object.
  @Test(arguments: [1, 3]) func `the limit is never exceeded`(share: Int) async throws {
    let limiters = try (0..<3).map { _ in try limiter(base, share: share) }
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "rates \(share)")
    var starts: [Duration] = []
    for _ in 0..<4_000 {
      clock.advance(by: .milliseconds(Int.random(in: 0...120, using: &generator)))
      let limiter = try #require(limiters.randomElement(using: &generator))
      if try await limiter.take(forKey: "ada").isGranted { starts.append(clock.now.offset) }
    }
    let more = share > 1 ? share * limiters.count : 0
    // The starts from any one to any other are at most those of the window between them.
    let times = starts.map { $0 / .seconds(1) }
    for (first, start) in times.enumerated() {
      let last = times[first...].prefix(200).enumerated().first {
        Double($0.offset + 1) > 4 + Double(more) + $0.element - start + 1e-6
      }
      #expect(last == nil)
      if last != nil { break }
    }
    let elapsed = clock.now.offset / .seconds(1)
    #expect(Double(starts.count) >= 0.95 * elapsed)
  }

  @Test func `concurrent callers share one share`() async throws {
    let limiter = try limiter(base, share: 4)
    let granted = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<20 { group.addTask { try await limiter.take(forKey: "ada").isGranted } }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(granted == 4)
  }

  /// The rest of a share belongs to the request for which the store grants the rest.
  @Test func `no other caller spends the rest of a share`() async throws {
    let store = CountedStore(base)
    let limiter = try limiter(store, share: 2)
    #expect(try await limiter.take(forKey: "ada").isGranted)
    let other = Locked<Task<Bool, any Error>?>(nil)
    store.afterNextCommit {
      other.withLock { $0 = Task { try await limiter.take(forKey: "ada").isGranted } }
      for _ in 0..<1_000 { await Task.yield() }
    }
    #expect(try await limiter.take(2, forKey: "ada").isGranted)
    var granted = 3
    if try await other.withLock({ $0 })?.value == true { granted += 1 }
    while try await limiter.take(forKey: "ada").isGranted { granted += 1 }
    #expect(granted == 4)
  }

  @Test func `idle entries are removed`() async throws {
    let limiter = try limiter(base)
    for number in 0..<300 { _ = try await limiter.take(forKey: StoreKey(integer: number)) }
    _ = try await limiter.take(4, forKey: "busy")
    #expect(try await limiter.removeIdle() == 0)
    clock.advance(by: .seconds(1))
    #expect(try await limiter.removeIdle() == 300)
    #expect(try base.keys(in: .all, limit: 9, order: .ascending) == ["limits/busy"])
    // After a restart of the machine, it is unknown for how long the entry was unused.
    let restarted = try self.limiter(base, origin: 1)
    #expect(try await restarted.removeIdle() == 0)
    clock.advance(by: .seconds(4))
    #expect(try await restarted.removeIdle() == 1)
    #expect(try base.count(in: .all) == 0)
  }

  @Test func `invalid uses are refused`() async throws {
    expectStoreError(.invalidArgument) { try limiter(base, share: 5) }
    expectStoreError(.invalidArgument) { try limiter(base, share: 0) }
    expectStoreError(.invalidArgument) {
      try RateLimiter(base, prefix: "l/", limit: RateLimit(0, per: .seconds(1)))
    }
    for share in [1, 2] {
      let limiter = try limiter(base, share: share)
      for starts in [0, 5] {
        await expectStoreError(.invalidArgument) { try await limiter.take(starts, forKey: "a") }
      }
    }
    let permits = try StoreLimiter(
      base, key: "p", configuration: LimiterConfiguration(concurrency: 1, rate: RateLimit(1, per: .seconds(1))))
    await expectStoreError(.invalidArgument) { try await permits.takeStarts() }
    try base.apply([.set("limits/a", [1, 2])])
    await expectStoreError(.corrupted) { try await limiter(base).take(forKey: "a") }
    await expectStoreError(.corrupted) { try await limiter(base).removeIdle() }
  }
}
