import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

@Suite struct QueueWorkerTests {
  /// The items that a closure has seen.
  private final class Log: Sendable {
    private let items = Locked<[Int]>([])
    func append(_ item: Int) { items.withLock { $0.append(item) } }
    var all: [Int] { items.withLock { $0 } }
  }

  private struct Failure: Error {}

  private func makeQueue(
    in folder: TemporaryFolder, _ name: String = "queue", maximumDeliveries: Int? = 3, clock: ManualClock? = nil
  ) async throws -> QueueStore<Int> {
    let configuration = QueueConfiguration(
      policy: QueuePolicy(maximumDeliveries: maximumDeliveries, retryPolicy: .immediate))
    // By another clock, a lease would end while a busy machine leaves the test no time.
    let clock = clock ?? ManualClock()
    return try await QueueStore(
      path: folder.path(name), codec: .cbor(), configuration: configuration, durability: .buffered,
      environment: .manual(clock))
  }

  /// Shuts a worker down when a condition holds, which it checks after each processed item.
  private func run(_ worker: QueueWorker, until isDone: @escaping @Sendable (QueueWorkerStatistics) async -> Bool)
    async throws
  {
    async let result: Void = worker.run()
    while await !isDone(worker.statistics()) { await Task.yield() }
    worker.shutDown()
    try await result
  }

  @Test func `processes and acknowledges items`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    try await queue.enqueue((0..<500).map { QueueInput($0) })
    let log = Log()
    let worker = QueueWorker([QueueHandler(queue) { log.append($0.value) }], concurrency: 8)
    try await run(worker) { $0.processed == 500 }
    #expect(log.all.sorted() == Array(0..<500))
    #expect(try await queue.counts().live == 0)
    #expect(worker.statistics().running == 0)
    try await queue.close()
  }

  @Test func `a batch is acknowledged or released as a whole`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder, maximumDeliveries: nil)
    try await queue.enqueue((0..<25).map { QueueInput($0) })
    let batches = Locked<[[Int]]>([])
    let worker = QueueWorker(
      [
        QueueHandler(queue, batch: 10) { deliveries in
          let count = batches.withLock { batches in
            batches.append(deliveries.map(\.value))
            return batches.count
          }
          if count == 1 { throw Failure() }
        }
      ], concurrency: 1)
    try await run(worker) { $0.processed == 25 }
    let seen = batches.withLock { $0 }
    #expect(seen.allSatisfy { $0.count <= 10 && $0 == $0.sorted() })
    #expect(seen[0] == Array(0..<10))
    #expect(Set(seen.dropFirst().joined()) == Set(0..<25))
    #expect(seen.dropFirst().reduce(0) { $0 + $1.count } == 25)
    #expect(worker.statistics().failed == 10)
    try await queue.close()
  }

  @Test func `runs at most so many items at the same time`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    try await queue.enqueue((0..<100).map { QueueInput($0) })
    let state = Locked((running: 0, maximum: 0))
    let worker = QueueWorker(
      [
        QueueHandler(queue) { _ in
          state.withLock { state in
            state.running += 1
            state.maximum = max(state.maximum, state.running)
          }
          for _ in 0..<10 { await Task.yield() }
          state.withLock { $0.running -= 1 }
        }
      ], concurrency: 5)
    try await run(worker) { $0.processed == 100 }
    #expect(state.withLock { $0.maximum } <= 5)
    #expect(state.withLock { $0.maximum } > 1)
    try await queue.close()
  }

  @Test func `failed items are retried and become dead letters`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    try await queue.enqueue((0..<20).map { QueueInput($0, id: StoreKey("job-\($0)")) })
    let events = Locked<[String]>([])
    let details = Locked<[String]>([])
    let worker = QueueWorker(
      [
        QueueHandler(queue) { delivery in
          if delivery.value % 10 == 3 { throw Failure() }
          if delivery.value % 10 == 4, delivery.attempt == 1 { throw Failure() }
        }
      ], concurrency: 4,
      onEvent: { event in
        events.withLock { $0.append("\(event)") }
        details.withLock { $0.append(event.detailedDescription) }
      })
    try await run(worker) { $0.processed == 18 && $0.dead == 2 }
    let dead = try await queue.deadLetters()
    #expect(try dead.map { try $0.value.get() }.sorted() == [3, 13])
    #expect(dead.map(\.attempts) == [3, 3])
    #expect(worker.statistics().failed == 8)
    #expect(events.withLock { $0.count { $0.contains("became a dead letter after 3 deliveries") } } == 2)
    // Only the detailed text names the items.
    #expect(events.withLock { !$0.contains { $0.contains("job-") } })
    #expect(details.withLock { $0.allSatisfy { $0.contains(/\(key "job-1?[34]"\)$/) } })
    try await queue.close()
  }

  @Test func `a time limit cancels the closure and counts as failure`() async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    let queue = try await makeQueue(in: folder, maximumDeliveries: 1)
    try await queue.enqueue(7)
    let worker = QueueWorker(
      [
        QueueHandler(queue, timeLimit: .seconds(10)) { _ in
          try await ManualClock().sleep(for: .seconds(1))  // Nobody advances this clock.
        }
      ], clock: clock)
    async let result: Void = worker.run()
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(10))
    while worker.statistics().dead < 1 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(worker.statistics().timedOut == 1)
    #expect(worker.statistics().failed == 0)
    try await queue.close()
  }

  @Test func `leases are renewed while a closure runs`() async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    let queue = try await makeQueue(in: folder, clock: clock)
    try await queue.enqueue(7)
    let gate = ManualClock()
    let log = Log()
    let worker = QueueWorker(
      [
        QueueHandler(queue, lease: .seconds(30)) { delivery in
          log.append(delivery.value)
          try await gate.sleep(for: .seconds(1))
        }
      ])
    async let result: Void = worker.run()
    try await gate.waitForSleepers(1)
    // Several times the lease passes in steps of its third. The queue and the renewal sleep by the clock.
    for _ in 0..<12 {
      try await clock.waitForSleepers(2)
      clock.advance(by: .seconds(10))
    }
    try await clock.waitForSleepers(2)
    #expect(try await queue.counts() == QueueCounts(leased: 1))
    gate.advance(by: .seconds(1))
    while worker.statistics().processed < 1 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(log.all == [7])
    try await queue.close()
  }

  @Test func `cancelling gives items back without counting the delivery`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder, maximumDeliveries: 1)
    try await queue.enqueue((0..<10).map { QueueInput($0) })
    let gate = ManualClock()
    let worker = QueueWorker(
      [QueueHandler(queue) { _ in try await gate.sleep(for: .seconds(1)) }], concurrency: 4)
    let task = Task { try await worker.run() }
    try await gate.waitForSleepers(4)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let counts = try await queue.counts()
    #expect(counts == QueueCounts(waiting: 10))
    #expect(worker.statistics().failed == 0)
    let deliveries = try await queue.receive(max: 10, lease: .seconds(1))
    #expect(deliveries.allSatisfy { $0.attempt == 1 })
    try await queue.close()
  }

  @Test func `shutting down lets running closures end`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    try await queue.enqueue((0..<10).map { QueueInput($0) })
    let gate = ManualClock()
    let worker = QueueWorker(
      [QueueHandler(queue) { _ in try await gate.sleep(for: .seconds(1)) }], concurrency: 3)
    async let result: Void = worker.run()
    try await gate.waitForSleepers(3)
    worker.shutDown()
    gate.advance(by: .seconds(1))
    try await result
    #expect(worker.statistics().processed == 3)
    #expect(try await queue.counts() == QueueCounts(waiting: 7))
    await #expect(throws: Never.self) { try await worker.run() }
    #expect(try await queue.counts() == QueueCounts(waiting: 7))
    try await queue.close()
  }

  @Test func `a queue with less weight is not starved`() async throws {
    let folder = try TemporaryFolder()
    let (first, second) = (try await makeQueue(in: folder, "a"), try await makeQueue(in: folder, "b"))
    try await first.enqueue((0..<4000).map { QueueInput($0) })
    try await second.enqueue((0..<400).map { QueueInput($0) })
    let counts = Locked([0, 0])
    let worker = QueueWorker(
      [
        QueueHandler(first, weight: 3) { _ in counts.withLock { $0[0] += 1 } },
        QueueHandler(second) { _ in counts.withLock { $0[1] += 1 } },
      ], concurrency: 1)
    try await run(worker) { _ in counts.withLock { $0[1] > 20 } }
    // The second queue did not wait for the end of the first one.
    #expect(try await first.counts().waiting > 0)
    try await first.close()
    try await second.close()
  }

  @Test func `a rate limit spaces starts`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    try await queue.enqueue((0..<5).map { QueueInput($0) })
    let clock = ManualClock()
    let log = Log()
    let worker = QueueWorker(
      [QueueHandler(queue) { log.append($0.value) }], rateLimit: RateLimit(1, per: .seconds(60)), clock: clock)
    async let result: Void = worker.run()
    for count in 1...5 {
      while log.all.count < count { await Task.yield() }
      guard count < 5 else { break }
      try await clock.waitForSleepers(1)
      #expect(log.all.count == count)
      clock.advance(by: .seconds(60))
    }
    worker.shutDown()
    try await result
    #expect(log.all == [0, 1, 2, 3, 4])
    try await queue.close()
  }

  @Test func `invalid arguments are refused`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    let process: @Sendable (QueueDelivery<Int>) async throws -> Void = { _ in }
    let workers = [
      QueueWorker([QueueHandler(queue, process: process)], concurrency: 0),
      QueueWorker([QueueHandler(queue, process: process)], rateLimit: RateLimit(0, per: .seconds(1))),
      QueueWorker([QueueHandler(queue, process: process)], rateLimit: RateLimit(1, per: .zero)),
      QueueWorker([QueueHandler(queue, weight: 0, process: process)]),
      QueueWorker([QueueHandler(queue, batch: 0) { (_: [QueueDelivery<Int>]) in }]),
      QueueWorker([QueueHandler(queue, lease: .zero, process: process)]),
      QueueWorker([QueueHandler(queue, timeLimit: .zero, process: process)]),
    ]
    for worker in workers {
      await #expect { try await worker.run() } throws: { StoreError.Code.invalidArgument ~= $0 }
    }
    try await queue.close()
  }

  @Test func `closing the queue ends the worker`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await makeQueue(in: folder)
    try await queue.enqueue(1)
    let worker = QueueWorker([QueueHandler(queue) { _ in }])
    async let result: Void = worker.run()
    while worker.statistics().processed < 1 { await Task.yield() }
    try await queue.close()
    try await result
  }
}
