import Larder
import LarderTesting
import TestSupport
import Testing

/// Limiters whose objects share a store, with time that the test moves.
@Suite struct StoreLimiterTests {
  private let clock = ManualClock()
  private let store = MemoryStore<[UInt8]>()

  private static let rate = RateLimit(10, per: .seconds(10), burst: 3)

  private func makeLimiter(
    _ configuration: LimiterConfiguration, key: StoreKey = "limits/mail"
  ) throws -> StoreLimiter {
    try StoreLimiter(store, key: key, configuration: configuration, time: .manual(clock), clock: clock)
  }

  /// A value that several tasks change.
  private final class Shared<Value: Sendable>: Sendable {
    private let locked: Locked<Value>

    init(_ value: Value) { locked = Locked(value) }

    var value: Value { locked.withLock { $0 } }

    func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { locked.withLock { body(&$0) } }
  }

  // MARK: Rates

  @Test func `a limit survives its objects`() async throws {
    var count = 0
    for _ in 0..<10 {
      let limiter = try makeLimiter(LimiterConfiguration(rate: Self.rate))
      if try await limiter.tryAcquire() != nil { count += 1 }
    }
    #expect(count == 3)
  }

  @Test func `several starts are permitted together`() async throws {
    let limiter = try makeLimiter(LimiterConfiguration(rate: Self.rate))
    #expect(try await limiter.tryAcquire(starts: 3) != nil)
    #expect(try await limiter.tryAcquire() == nil)
    clock.advance(by: .seconds(2))
    #expect(try await limiter.tryAcquire(starts: 3) == nil)
    #expect(try await limiter.tryAcquire(starts: 2) != nil)
    await expectStoreError(.invalidArgument) { try await limiter.acquire(starts: 4) }
    await expectStoreError(.invalidArgument) { try await limiter.tryAcquire(starts: 0) }
  }

  @Test func `work that does not start returns its starts`() async throws {
    let limiter = try makeLimiter(LimiterConfiguration(rate: RateLimit(1, per: .seconds(60))))
    let permit = try #require(try await limiter.tryAcquire())
    let task = Task { try await limiter.acquire() }
    try await clock.waitForSleepers(1)
    try await permit.release(usedStarts: 0)
    // The caller that waits gets them immediately.
    _ = try await task.value
    try await permit.release(usedStarts: 0)
    #expect(try await limiter.tryAcquire() == nil)
  }

  // MARK: Permits

  @Test func `a permit that is never released comes back`() async throws {
    let crashed = try makeLimiter(LimiterConfiguration(concurrency: 1, lease: .seconds(20)))
    // A permit that is discarded is not renewed, as if its process had crashed.
    var permit: LimiterPermit? = try await crashed.acquire()
    try await clock.waitForSleepers(1)
    permit = nil
    await yieldUntil { clock.sleeperCount == 0 }
    let limiter = try makeLimiter(LimiterConfiguration(concurrency: 1, lease: .seconds(20)))
    let task = Task { try await limiter.acquire() }
    for _ in 0..<20 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
    }
    permit = try await task.value
    #expect(try await crashed.tryAcquire() == nil)
    try await permit?.release()
    #expect(try await crashed.tryAcquire() != nil)
  }

  @Test func `a renewal that fails is repeated`() async throws {
    let fails = Shared(false)
    let store = ProbedStore<[UInt8]> { _, _ in
      if fails.change({ fails in
        defer { fails = false }
        return fails
      }) {
        throw StoreError(.ioFailed, during: .update, store: "probed", message: "the disk is away")
      }
    }
    let limiter = try StoreLimiter(
      store, key: "limits/mail", configuration: LimiterConfiguration(concurrency: 1, lease: .seconds(30)),
      time: .manual(clock), clock: clock)
    let permit = try await limiter.acquire()
    fails.change { $0 = true }
    for _ in 0..<5 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(10))
    }
    try await clock.waitForSleepers(1)
    #expect(!fails.value)
    #expect(try await limiter.tryAcquire() == nil, "the lease was renewed")
    try await permit.release()
  }

  @Test func `a release wakes the next caller immediately`() async throws {
    let limiter = try makeLimiter(LimiterConfiguration(concurrency: 1))
    let permit = try await limiter.acquire()
    let order = Shared<[Int]>([])
    let arrival = ArrivalOrder()
    let tasks = (0..<3).map { number in
      Task(executorPreference: arrival) {
        try await limiter.withPermit { order.change { $0.append(number) } }
      }
    }
    // The first one waits for the permit, and the others for the first one.
    try await clock.waitForSleepers(1)
    // A caller that does not wait comes after those that do.
    #expect(try await limiter.tryAcquire() == nil)
    try await permit.release()
    for task in tasks { try await task.value }
    #expect(order.value == [0, 1, 2])
  }

  @Test func `a caller that is cancelled takes nothing`() async throws {
    let limiter = try makeLimiter(LimiterConfiguration(concurrency: 1))
    let permit = try await limiter.acquire()
    let tasks = (0..<3).map { _ in Task { try await limiter.acquire() } }
    try await clock.waitForSleepers(1)
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    try await permit.release()
    #expect(try await limiter.tryAcquire() != nil)
  }

  @Test func `work that is cancelled releases its permit`() async throws {
    let limiter = try makeLimiter(LimiterConfiguration(concurrency: 1))
    let task = Task { [clock] in try await limiter.withPermit { try await clock.sleep(for: .seconds(1)) } }
    // The work and the renewal.
    try await clock.waitForSleepers(2)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await limiter.tryAcquire() != nil)
  }

  // MARK: The store

  @Test func `a clock that is read late is not taken for the time of the commit`() async throws {
    // The reading is ten seconds old when the update runs, as if it had waited for another one.
    let clock = clock
    let slow = SharedClock(spansHosts: true) {
      defer { clock.advance(by: .seconds(10)) }
      return ClockReading(origin: 0, nanoseconds: clock.now.offset.wholeNanoseconds)
    }
    let limiter = try StoreLimiter(
      store, key: "limits/slow", configuration: LimiterConfiguration(rate: RateLimit(1, per: .seconds(10))), time: slow,
      clock: clock)
    let permit = try #require(try await limiter.tryAcquire())
    #expect(permit.time.earliest == 0)
    #expect(permit.time.latest == 10_000_000_000)
    // 20 seconds after the first reading, of which only ten are sure.
    #expect(try await limiter.tryAcquire() == nil)
    #expect(try await limiter.tryAcquire() != nil)
  }

  @Test func `a state that cannot be read is left as it is`() async throws {
    let limiter = try makeLimiter(LimiterConfiguration(concurrency: 1), key: "limits/mail")
    let records: [([UInt8], StoreError.Code)] = [([1, 2, 3], .corrupted), ([3], .versionMismatch), ([], .corrupted)]
    for (record, code) in records {
      try await store.setValue(record, forKey: "limits/mail")
      let error = await expectStoreError(code) { try await limiter.acquire() }
      #expect(error?.key == "limits/mail")
      #expect(try store.value(forKey: "limits/mail") == record)
    }
  }

  @Test func `stores and rules that do not fit are refused`() async throws {
    func open(
      _ base: some DataStore<[UInt8]>, _ configuration: LimiterConfiguration = LimiterConfiguration(concurrency: 1),
      key: StoreKey = "limit"
    ) throws {
      _ = try StoreLimiter(base, key: key, configuration: configuration)
    }
    try open(store)
    for configuration in [
      LimiterConfiguration(concurrency: 0), LimiterConfiguration(concurrency: 1001),
      LimiterConfiguration(rate: RateLimit(0, per: .seconds(1))), LimiterConfiguration(lease: .zero),
      LimiterConfiguration(pollInterval: .zero), LimiterConfiguration(lease: .seconds(Int64.max)),
    ] {
      expectStoreError(.invalidArgument) { try open(store, configuration) }
    }
    expectStoreError(.invalidKey) { try open(store, key: "") }
    var information = store.information
    information.sharing = .betweenHosts
    expectStoreError(.unsupported) { try open(DescribedStore(base: store, information: information)) }
    information = store.information
    information.entryLifetime = .untilEvicted
    expectStoreError(.unsupported) { try open(DescribedStore(base: store, information: information)) }
    information = store.information
    information.access = .readOnly
    expectStoreError(.notPermitted) { try open(DescribedStore(base: store, information: information)) }
    information = store.information
    information.maximumValueSize = 1000
    expectStoreError(.unsupported) { try open(DescribedStore(base: store, information: information)) }
  }

  @Test func `the boot clock is steady`() async throws {
    let first = try await SharedClock.boot.reading()
    let second = try await SharedClock.boot.reading()
    #expect(first.origin == second.origin)
    #expect(first.origin != 0)
    #expect(first.earliest <= second.earliest)
    #expect(first.earliest == first.latest)
  }
}

/// A store with other information than its base.
private struct DescribedStore: ForwardingStore {
  let base: MemoryStore<[UInt8]>
  let information: StoreInformation

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}
