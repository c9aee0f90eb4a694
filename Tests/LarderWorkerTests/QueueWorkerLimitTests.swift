import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Rate limits, time limits, suspect items and arguments at their limits.
@Suite struct QueueWorkerLimitTests {
  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>
  private let clock = ManualClock()

  private func makeQueue() async throws -> Queue {
    let clock = clock
    return try await StoreQueue(
      MemoryStore(), prefix: "q/", codec: .cbor(),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(retryPolicy: .immediate)),
      environment: .manual(clock))
  }

  /// Yields to other tasks so often that work in progress has ended afterward.
  private func yield() async {
    for _ in 0..<2000 { await Task.yield() }
  }

  @Test func `items that have waited for a slot do not start together`() async throws {
    let queue = try await makeQueue()
    try await queue.enqueue((0..<3).map { QueueInput($0) })
    let (gate, rateClock) = (ManualClock(), ManualClock())
    let starts = Locked<[Duration]>([])
    let worker = QueueWorker(
      [
        QueueHandler(queue) { delivery in
          starts.withLock { $0.append(rateClock.now.offset) }
          if delivery.value == 0 { try await gate.sleep(for: .seconds(1)) }
        }
      ], concurrency: 1, rateLimit: RateLimit(1, per: .seconds(60)), clock: rateClock)
    async let result: Void = worker.run()
    try await gate.waitForSleepers(1)
    await yield()
    rateClock.advance(by: .seconds(90))
    await yield()
    gate.advance(by: .seconds(1))
    while worker.statistics().processed < 2 { await Task.yield() }
    try await rateClock.waitForSleepers(1)
    rateClock.advance(by: .seconds(30))
    await yield()
    rateClock.advance(by: .seconds(30))
    while worker.statistics().processed < 3 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(starts.withLock { $0 } == [.zero, .seconds(90), .seconds(150)])
  }

  @Test func `a rate limit counts the items of a batch`() async throws {
    let queue = try await makeQueue()
    try await queue.enqueue((0..<20).map { QueueInput($0) })
    let rateClock = ManualClock()
    let starts = Locked<[Duration]>([])
    let worker = QueueWorker(
      [QueueHandler(queue, batch: 10) { _ in starts.withLock { $0.append(rateClock.now.offset) } }],
      rateLimit: RateLimit(10, per: .seconds(60)), clock: rateClock)
    async let result: Void = worker.run()
    // The first batch starts before the clock moves, however busy the machine is.
    while worker.statistics().processed < 10 { await Task.yield() }
    for _ in 0..<20 where worker.statistics().processed < 20 {
      while rateClock.sleeperCount == 0, worker.statistics().processed < 20 { await Task.yield() }
      rateClock.advance(by: .seconds(6))
      await yield()
    }
    while worker.statistics().processed < 20 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(starts.withLock { $0 } == [.zero, .seconds(60)])
  }

  @Test func `a closure that ends after the worker was stopped is not repeated`() async throws {
    let queue = try await makeQueue()
    try await queue.enqueue(7)
    let gate = ManualClock()
    let worker = QueueWorker(
      [
        QueueHandler(queue, timeLimit: .seconds(600)) { _ in
          // Ignores that it is cancelled.
          try await Task { try await gate.sleep(for: .seconds(1)) }.value
        }
      ], clock: clock)
    let task = Task { try await worker.run() }
    try await gate.waitForSleepers(1)
    task.cancel()
    await yield()
    gate.advance(by: .seconds(1))
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(worker.statistics().processed == 1)
    #expect(try await queue.count() == 0)
  }

  @Test func `no other item is leased while a suspect one runs`() async throws {
    let queue = try await makeQueue()
    try await queue.enqueue((0..<3).map { QueueInput($0) })
    let first = try #require(try await queue.receive(lease: .seconds(600)))
    for _ in 0..<2 {
      for _ in 1...2 { #expect(try await queue.receive(lease: .seconds(60)) != nil) }
      clock.advance(by: .seconds(60))
    }
    _ = try await queue.release([first.receipt], after: .zero, countsAsAttempt: false)
    let leased = Locked<[Int: Int]>([:])
    let worker = QueueWorker([
      QueueHandler(queue, batch: 2) { deliveries in
        let count = try await queue.counts().leased
        if deliveries[0].isSuspect { leased.withLock { $0[deliveries[0].value] = count } }
      }
    ])
    async let result: Void = worker.run()
    while worker.statistics().processed < 3 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(leased.withLock { $0 } == [1: 1, 2: 1])
  }

  @Test func `a worker does not run twice`() async throws {
    let queue = try await makeQueue()
    let worker = QueueWorker([QueueHandler(queue) { _ in }])
    async let result: Void = worker.run()
    try await queue.enqueue(1)
    while worker.statistics().processed < 1 { await Task.yield() }
    await expectStoreError(.conflict) { try await worker.run() }
    worker.shutDown()
    try await result
  }

  @Test func `arguments that would overflow are refused`() async throws {
    let queue = try await makeQueue()
    let process: @Sendable (QueueDelivery<Int>) async throws -> Void = { _ in }
    for handler in [
      QueueHandler(queue, weight: .max, process: process),
      QueueHandler(queue, retryPolicy: RetryPolicy(jitter: .nan), process: process),
      QueueHandler(queue, retryPolicy: RetryPolicy(base: .seconds(-1)), process: process),
    ] {
      let worker = QueueWorker([handler])
      // So that a worker that accepts them ends.
      worker.shutDown()
      await expectStoreError(.invalidArgument) { try await worker.run() }
    }
  }
}
