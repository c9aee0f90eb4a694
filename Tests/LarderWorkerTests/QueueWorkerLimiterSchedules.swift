import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Workers that share a limiter, in many schedules, in which time passes only while nothing else can happen.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct QueueWorkerLimiterSchedules {
  /// The closures of several workers that run, and the times of their starts.
  private final class Work: Sendable {
    private struct State {
      var running = 0
      var most = 0
      var starts: [Duration] = []
    }

    private let state = Locked(State())
    private let clock: ManualClock

    init(_ clock: ManualClock) { self.clock = clock }

    var most: Int { state.withLock { $0.most } }

    var starts: [Duration] { state.withLock { $0.starts } }

    func run(for duration: Duration) async throws {
      state.withLock { state in
        state.running += 1
        state.most = max(state.most, state.running)
        state.starts.append(clock.now.offset)
      }
      defer { state.withLock { $0.running -= 1 } }
      if duration > .zero { try await clock.sleep(for: duration) }
    }
  }

  /// Runs two workers with a limiter of their own until they have processed some items, and returns their work.
  private func run(
    _ clock: ManualClock, _ configuration: LimiterConfiguration, items: Int, eachFor duration: Duration
  ) async throws -> Work {
    let bytes = MemoryStore<[UInt8]>()
    let queue = try await StoreQueue(bytes, prefix: "q/", codec: .cbor(Int.self), environment: .manual(clock))
    try await queue.enqueue((0..<items).map { QueueInput($0) })
    let work = Work(clock)
    func makeLimiter() throws -> StoreLimiter {
      try StoreLimiter(bytes, key: "limit", configuration: configuration, time: .manual(clock), clock: clock)
    }
    let workers = try (0..<2).map { _ in
      QueueWorker(
        [QueueHandler(queue, limiter: try makeLimiter()) { _ in try await work.run(for: duration) }], clock: clock)
    }
    try await withThrowingTaskGroup { group in
      for worker in workers { group.addTask { try await worker.run() } }
      while workers.map({ $0.statistics().processed }).reduce(0, +) < items {
        try await clock.sleep(for: .milliseconds(500))
      }
      for worker in workers { worker.shutDown() }
      try await group.waitForAll()
    }
    if let concurrency = configuration.concurrency {
      // All permits were released.
      let limiter = try makeLimiter()
      for _ in 0..<concurrency { try check(try await limiter.tryAcquire() != nil, "a permit is missing") }
    }
    return work
  }

  @Test func `two workers together process at most as many items as the limit`() async throws {
    try await runSchedules("permits of two workers", share: 0.2, switchesAtLocks: false) { context in
      // Longer than the leases of items and permits.
      let work = try await run(context.clock, LimiterConfiguration(concurrency: 3), items: 7, eachFor: .seconds(50))
      try check(work.most == 3, "\(work.most) at the same time")
    }
  }

  @Test func `two workers together start at the rate`() async throws {
    try await runSchedules("starts of two workers", share: 0.2, switchesAtLocks: false) { context in
      let rate = RateLimit(6, per: .seconds(60), burst: 2)
      let starts = try await run(context.clock, LimiterConfiguration(rate: rate), items: 20, eachFor: .zero).starts
      for (first, time) in starts.enumerated() {
        for last in first..<starts.count {
          try check(
            Double(last - first + 1) <= 2 + (starts[last] - time) / .seconds(10),
            "starts \(first) to \(last) of \(starts)")
        }
      }
      // The limit is reached: no start was lost to a worker that found no item.
      try check(context.clock.now.offset < .seconds(190), "the last start is at \(context.clock.now.offset)")
    }
  }
}
