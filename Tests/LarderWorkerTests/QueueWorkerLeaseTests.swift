import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// A worker leases only what it can start, and stops what it no longer holds.
@Suite(.timeLimit(.minutes(5))) struct QueueWorkerLeaseTests {
  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>
  private let clock = ManualClock()
  private let bytes = MemoryStore<[UInt8]>()

  /// Opens the queue as another process would.
  private func open() async throws -> Queue {
    try await StoreQueue(
      bytes, prefix: "q/", codec: .cbor(),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(retryPolicy: .immediate)),
      environment: .manual(clock))
  }

  /// Yields so often that work in progress has ended.
  private func yield() async {
    for _ in 0..<2000 { await Task.yield() }
  }

  @Test func `an item without a slot is left to other workers`() async throws {
    let (first, second) = (try await open(), try await open())
    let gate = ManualClock()
    let starts = Locked<[String]>([])
    let clock = clock
    func worker(_ name: String, _ queue: Queue) -> QueueWorker {
      QueueWorker(
        [
          QueueHandler(queue) { delivery in
            starts.withLock { $0.append("\(name)\(delivery.value)") }
            if delivery.value == 0 { try await gate.sleep(for: .seconds(1)) }
          }
        ], concurrency: 1, clock: clock)
    }
    let (a, b) = (worker("a", first), worker("b", second))
    async let resultOfA: Void = a.run()
    try await first.enqueue(0)
    try await gate.waitForSleepers(1)
    try await first.enqueue((1..<5).map { QueueInput($0) })
    await yield()
    #expect(try await first.counts() == QueueCounts(waiting: 4, leased: 1))
    async let resultOfB: Void = b.run()
    await yieldUntil { b.statistics().processed == 4 }
    #expect(starts.withLock { $0 } == ["a0", "b1", "b2", "b3", "b4"])
    gate.advance(by: .seconds(1))
    await yieldUntil { a.statistics().processed == 1 }
    a.shutDown()
    b.shutDown()
    try await resultOfA
    try await resultOfB
  }

  /// The worker has waited for an item, and then leases one for the same batch that must run alone.
  @Test func `a suspect without a slot is given back`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    for _ in 0..<2 {
      #expect(try await queue.receive(lease: .seconds(1)) != nil)
      clock.advance(by: .seconds(1))
    }
    try await queue.pause()
    let batches = Locked<[[Int]]>([])
    let handler = QueueHandler(queue, batch: 5) { deliveries in
      batches.withLock { $0.append(deliveries.map(\.value)) }
    }
    let worker = QueueWorker([handler], concurrency: 1, clock: clock)
    async let result: Void = worker.run()
    await yield()
    try await queue.enqueue(2, priority: 5)
    await yield()
    #expect(worker.statistics().processed == 0)
    try await queue.resume()
    // The clock does not move, so the lease is not waited for.
    await yieldUntil { worker.statistics().processed == 2 }
    #expect(batches.withLock { $0 } == [[2], [1]])
    worker.shutDown()
    try await result
  }

  /// A queue whose releases wait until the test ends them.
  private struct StuckQueue: PassingStore, DurableQueue {
    let base: Queue
    let stuck = HungClosure()

    func release(
      _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
    ) async throws -> [DeliveryReceipt] {
      await stuck.run()
      return try await base.release(receipts, after: delay, countsAsAttempt: countsAsAttempt)
    }
  }

  @Test func `a worker that has stopped renews nothing if the queue does not answer`() async throws {
    struct Failure: Error {}
    let queue = try await open()
    try await queue.enqueue(7)
    let stuckQueue = StuckQueue(base: queue)
    let worker = QueueWorker(
      [QueueHandler(stuckQueue, lease: .seconds(30)) { _ in throw Failure() }], shutdownLimit: .seconds(1), clock: clock
    )
    let hasStopped = Locked(false)
    let running = Task {
      defer { hasStopped.withLock { $0 = true } }
      try await worker.run()
    }
    try await stuckQueue.stuck.waitForCalls(1)
    worker.shutDown()
    while !hasStopped.withLock({ $0 }) {
      await yield()
      clock.advance(by: .seconds(1))
    }
    try await running.value
    for _ in 0..<7 {
      await yield()
      clock.advance(by: .seconds(5))
    }
    #expect(try await queue.receive(lease: .seconds(30))?.value == 7)
    stuckQueue.stuck.end()
  }

  @Test func `an item with higher priority comes first although it arrived later`() async throws {
    let queue = try await open()
    let gate = ManualClock()
    let log = Locked<[Int]>([])
    let worker = QueueWorker(
      [
        QueueHandler(queue) { delivery in
          log.withLock { $0.append(delivery.value) }
          if delivery.value == 0 { try await gate.sleep(for: .seconds(1)) }
        }
      ], concurrency: 1, clock: clock)
    async let result: Void = worker.run()
    try await queue.enqueue(0)
    try await gate.waitForSleepers(1)
    try await queue.enqueue(1)
    await yield()
    try await queue.enqueue(2, priority: 1)
    gate.advance(by: .seconds(1))
    await yieldUntil { worker.statistics().processed == 3 }
    #expect(log.withLock { $0 } == [0, 2, 1])
    worker.shutDown()
    try await result
  }

  /// An item of a second queue arrives while the only slot is taken.
  @Test func `an item that arrives without a slot is given back at once`() async throws {
    let queue = try await open()
    let other = try await StoreQueue(
      MemoryStore(), prefix: "q/", codec: .cbor(Int.self),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)), environment: .manual(clock))
    let gate = ManualClock()
    let log = Locked<[Int]>([])
    let worker = QueueWorker(
      [
        QueueHandler(queue) { _ in try await gate.sleep(for: .seconds(1)) },
        QueueHandler(other) { delivery in log.withLock { $0.append(delivery.attempt) } },
      ], concurrency: 1, clock: clock)
    async let result: Void = worker.run()
    // Both queues are waited for.
    try await clock.waitForSleepers(2)
    try await queue.enqueue(0)
    try await gate.waitForSleepers(1)
    try await other.enqueue(1)
    await yieldUntil { worker.statistics().givenBack == 1 }
    #expect(try await other.counts() == QueueCounts(waiting: 1))
    gate.advance(by: .seconds(1))
    await yieldUntil { worker.statistics().processed == 2 }
    // The delivery did not count.
    #expect(log.withLock { $0 } == [1])
    worker.shutDown()
    try await result
  }

  /// The clock jumps, as for a process that was suspended and continues.
  @Test func `a closure whose lease is lost is cancelled`() async throws {
    let (first, second) = (try await open(), try await open())
    try await first.enqueue(7)
    let gate = ManualClock()
    let events = Locked<[String]>([])
    let worker = QueueWorker(
      [QueueHandler(first, lease: .seconds(30)) { _ in try await gate.sleep(for: .seconds(1)) }], concurrency: 1,
      onEvent: { event in events.withLock { $0.append("\(event)") } })
    async let result: Void = worker.run()
    try await gate.waitForSleepers(1)
    try await clock.waitForSleepers(1)
    let receiving = Task { try await second.nextDelivery(lease: .seconds(86_400)).get() }
    await yield()
    clock.advance(by: .seconds(120))
    // A sleep that begins only after the jump must end, too.
    let ticking = Task { [clock] in
      while !Task.isCancelled {
        clock.advance(by: .milliseconds(100))
        await Task.yield()
      }
    }
    defer { ticking.cancel() }
    // The closure never ends by itself.
    await yieldUntil { worker.statistics().leasesLost >= 1 }
    let delivery = try await receiving.value
    // The worker may have been the first to receive the item again, and have lost it again.
    let losses = delivery.attempt - 1
    await yieldUntil { worker.statistics().leasesLost == losses }
    try await second.acknowledge(delivery.receipt)
    worker.shutDown()
    try await result
    #expect(events.withLock { $0.count { $0.contains("the lease ended") } } == losses)
    #expect(worker.statistics().failed == 0 && worker.statistics().processed == 0)
    #expect(gate.sleeperCount == 0)
  }

  /// The process is suspended while `receive` returns, and another one takes over the items.
  @Test func `nothing starts that is no longer held`() async throws {
    let (first, second) = (TroubledQueue(try await open()), try await open())
    try await first.enqueue((0..<3).map { QueueInput($0) })
    let clock = clock
    let taken = Locked(false)
    let log = Locked<[Int]>([])
    first.trouble.after { operation in
      guard operation == .receive,
        !taken.withLock({ value in
          defer { value = true }; return value
        })
      else { return }
      clock.advance(by: .seconds(120))
    }
    let worker = QueueWorker(
      [
        QueueHandler(first, batch: 3, lease: .seconds(30)) { deliveries in
          log.withLock { $0 += deliveries.map(\.value) }
        }
      ],
      concurrency: 1)
    async let result: Void = worker.run()
    await yieldUntil { worker.statistics().leasesLost == 3 }
    await yieldUntil { worker.statistics().processed == 3 }
    worker.shutDown()
    try await result
    // The leases were lost before the closure was called, and the second delivery was processed.
    #expect(log.withLock { $0.sorted() } == [0, 1, 2])
    #expect(try await second.count() == 0)
  }

  @Test func `leases that cannot be renewed are lost`() async throws {
    let queue = TroubledQueue(try await open())
    try await queue.enqueue(7)
    queue.trouble.before { operation in
      guard operation == .extend else { return }
      throw StoreError(.ioFailed, during: operation, message: "the server is away", isRetryable: true)
    }
    let (gate, clock) = (ManualClock(), clock)
    let worker = QueueWorker(
      [QueueHandler(queue, lease: .seconds(30)) { _ in try await gate.sleep(for: .seconds(1)) }], concurrency: 1,
      // The item is delivered again, to a closure that does not end by itself.
      shutdownLimit: .zero)
    async let result: Void = worker.run()
    try await gate.waitForSleepers(1)
    for second in 0..<30 {
      #expect(gate.sleeperCount == 1, "second \(second)")
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
      await yield()
    }
    await yieldUntil { worker.statistics().leasesLost == 1 }
    worker.shutDown()
    try await result
  }
}
