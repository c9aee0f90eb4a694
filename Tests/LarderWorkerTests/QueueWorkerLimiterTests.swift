import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Workers that share a limiter.
@Suite(.timeLimit(.minutes(5))) struct QueueWorkerLimiterTests {
  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>
  private let clock = ManualClock()
  private let bytes = MemoryStore<[UInt8]>()

  private func makeQueue(_ values: Range<Int> = 0..<0) async throws -> Queue {
    let queue = try await Queue(bytes, prefix: "q/", codec: .cbor(), environment: .manual(clock))
    if !values.isEmpty { try await queue.enqueue(values.map { QueueInput($0) }) }
    return queue
  }

  private func makeLimiter(concurrency: Int? = nil, rate: RateLimit? = nil) throws -> StoreLimiter {
    try StoreLimiter(
      bytes, key: "limit", configuration: LimiterConfiguration(concurrency: concurrency, rate: rate),
      time: .manual(clock), clock: clock)
  }

  private func yield() async {
    for _ in 0..<1000 { await Task.yield() }
  }

  @Test func `a hung closure keeps its permit until it ends`() async throws {
    let queue = try await makeQueue(0..<1)
    let limiter = try makeLimiter(concurrency: 1)
    let hung = HungClosure()
    let handler = QueueHandler(queue, timeLimit: .seconds(1), limiter: limiter) { delivery in
      if delivery.attempt == 1 { await hung.run() }
    }
    let worker = QueueWorker([handler], clock: clock)
    async let result: Void = worker.run()
    try await hung.waitForCalls(1)
    await clock.advance(by: .seconds(1), whileSleeping: 1) { worker.health().hungSlots == 1 }
    await yield()
    #expect(try await limiter.tryAcquire() == nil)
    hung.end()
    try await yieldUntil { try await limiter.tryAcquire() != nil }
    worker.shutDown()
    try await result
  }

  @Test func `an idle worker uses no start`() async throws {
    let queue = try await makeQueue()
    let rate = RateLimit(1, per: .seconds(3600), burst: 2)
    let worker = QueueWorker(
      [QueueHandler(queue, limiter: try makeLimiter(concurrency: 1, rate: rate)) { _ in }], clock: clock)
    async let result: Void = worker.run()
    await yield()
    let permit = try await makeLimiter(concurrency: 1, rate: rate).tryAcquire(starts: 2)
    #expect(permit != nil)
    worker.shutDown()
    try await result
  }

  @Test func `a batch that is not full returns starts`() async throws {
    let queue = try await makeQueue(0..<3)
    let rate = RateLimit(1, per: .seconds(3600), burst: 5)
    let worker = QueueWorker(
      [QueueHandler(queue, batch: 5, limiter: try makeLimiter(rate: rate)) { _ in }], clock: clock)
    async let result: Void = worker.run()
    while worker.statistics().processed < 3 { await Task.yield() }
    worker.shutDown()
    try await result
    let limiter = try makeLimiter(rate: rate)
    #expect(try await limiter.tryAcquire(starts: 2) != nil)
    #expect(try await limiter.tryAcquire() == nil)
  }

  @Test func `a worker that waits for a permit leases nothing and stops immediately`() async throws {
    let queue = try await makeQueue()
    let permit = try await makeLimiter(concurrency: 1).acquire()
    let worker = QueueWorker([QueueHandler(queue, limiter: try makeLimiter(concurrency: 1)) { _ in }], clock: clock)
    async let result: Void = worker.run()
    // The permit is renewed, and the worker waits for an item.
    try await clock.waitForSleepers(2)
    try await queue.enqueue(1)
    // It gives the item back, and then waits for a permit.
    await yieldUntil { worker.statistics().givenBack == 1 }
    #expect(try await queue.counts().waiting == 1)
    worker.shutDown()
    try await result
    #expect(worker.statistics().processed == 0)
    try await permit.release()
    #expect(try await makeLimiter(concurrency: 1).tryAcquire() != nil)
  }

  @Test func `errors of a limiter are reported and tried again`() async throws {
    let queue = try await makeQueue(0..<1)
    try await bytes.setValue([1, 2, 3], forKey: "limit")
    let errors = Locked<[StoreError.Code]>([])
    let worker = QueueWorker(
      [QueueHandler(queue, limiter: try makeLimiter(concurrency: 1)) { _ in }], clock: clock,
      onEvent: { event in
        if case .queueFailed(_, let error as StoreError) = event { errors.withLock { $0.append(error.code) } }
      })
    async let result: Void = worker.run()
    try await clock.waitForSleepers(1)
    try await bytes.removeValue(forKey: "limit")
    while worker.statistics().processed < 1 {
      await yield()
      clock.advance(by: .seconds(1))
    }
    worker.shutDown()
    try await result
    #expect(errors.withLock { $0 } == [.corrupted])
  }

  @Test func `a batch that is greater than the burst is refused`() async throws {
    let limiter = try makeLimiter(rate: RateLimit(1, per: .seconds(1), burst: 4))
    let worker = QueueWorker([QueueHandler(try await makeQueue(), batch: 5, limiter: limiter) { _ in }])
    await expectStoreError(.invalidArgument) { try await worker.run() }
  }
}
