import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Closures that ignore their cancellation, and items that must run alone: they stop nothing else.
@Suite(.timeLimit(.minutes(2))) struct QueueWorkerHungTests {
  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>
  private let clock = ManualClock()
  private let hung = HungClosure()

  private func makeQueue(_ deliveries: Int? = 5, retryPolicy: RetryPolicy = .immediate) async throws -> Queue {
    try await StoreQueue(
      MemoryStore(), prefix: "q/", codec: .cbor(),
      configuration: StoreQueueConfiguration(
        policy: QueuePolicy(maximumDeliveries: deliveries, retryPolicy: retryPolicy)),
      environment: .manual(clock))
  }

  /// Delivers the first items of a queue to consumers that crash.
  private func crash(_ queue: Queue, items: Int, times: Int) async throws {
    for _ in 0..<times {
      var count = 0
      while count < items {
        let deliveries = try await queue.receive(max: items - count, lease: .seconds(1))
        try #require(!deliveries.isEmpty)
        count += deliveries.count
      }
      clock.advance(by: .seconds(1))
    }
  }

  @Test func `a hung closure costs one slot and its item becomes a dead letter`() async throws {
    let (mails, reports) = (try await makeQueue(), try await makeQueue())
    let hung = hung
    let calls = Locked(0)
    let events = Locked<[String]>([])
    let worker = QueueWorker(
      [
        QueueHandler(mails, lease: .seconds(30)) { _ in },
        QueueHandler(reports, lease: .seconds(30), timeLimit: .seconds(10)) { delivery in
          guard delivery.value < 0 else { return }
          calls.withLock { $0 += 1 }
          await hung.run()
        },
      ], concurrency: 2, clock: clock, onEvent: { event in events.withLock { $0.append("\(event)") } })
    try await reports.enqueue(-1)
    async let result: Void = worker.run()
    try await hung.waitForCalls(1)
    for limit in [Duration.seconds(10), QueueWorker.cancellationLimit] {
      // Two queues, the renewal, and the limit.
      try await clock.waitForSleepers(4)
      clock.advance(by: limit)
    }
    await yieldUntil { worker.statistics().dead == 1 }
    // The closure has been called once. Its item has failed immediately in the four other deliveries.
    #expect(calls.withLock { $0 } == 1)
    #expect(clock.now.offset <= .seconds(20))
    #expect(worker.health().isRunning && worker.health().slots == 2 && worker.health().hungSlots == 1)
    #expect(worker.statistics().timedOut == 1 && worker.statistics().failed == 4)
    for number in 0..<100 {
      try await mails.enqueue(number)
      try await reports.enqueue(number)
    }
    await yieldUntil { worker.statistics().processed == 200 }
    #expect(events.withLock { $0.count { $0.contains("1 of 2 are hung") } } == 1)
    #expect(worker.statistics().running == 1)
    hung.end()
    await yieldUntil { worker.health().hungSlots == 0 }
    #expect(worker.statistics().running == 0)
    worker.shutDown()
    try await result
  }

  @Test(arguments: [false, true]) func `a worker whose slots are all hung says so`(exits: Bool) async throws {
    let queue = try await makeQueue()
    try await queue.enqueue((0..<5).map { QueueInput($0) })
    let hung = hung
    let stalls = Locked(0)
    let worker = QueueWorker(
      [
        QueueHandler(queue, timeLimit: .seconds(10)) { delivery in
          if delivery.value < 2, delivery.attempt == 1 { await hung.run() }
        }
      ], concurrency: 2, exitsIfStalled: exits, clock: clock,
      onEvent: { event in
        if case .stalled = event { stalls.withLock { $0 += 1 } }
      })
    let running = Task { try await worker.run() }
    try await hung.waitForCalls(2)
    // The renewal and the limit of each closure.
    await clock.advance(by: .seconds(5), whileSleeping: 4) { worker.health().isStalled }
    await yieldUntil { stalls.withLock { $0 } == 1 }
    if exits {
      await expectStoreError(.timedOut) { try await running.value }
      #expect(try await queue.counts().leased == 0)
      #expect(!worker.health().isRunning)
      hung.end()
    } else {
      #expect(try await queue.counts().leased == 0)
      // It continues when the closures end.
      hung.end()
      await yieldUntil { worker.statistics().processed == 5 }
      worker.shutDown()
      try await running.value
    }
  }

  @Test func `suspects hold back no other queue`() async throws {
    let (mails, reports) = (try await makeQueue(), try await makeQueue())
    try await mails.enqueue((0..<20).map { QueueInput($0) })
    try await crash(mails, items: 20, times: 2)
    try await mails.enqueue((20..<40).map { QueueInput($0) })
    try await reports.enqueue(0)
    let hung = hung
    let log = Locked<[Int: Int]>([:])
    let counts = Locked((running: 0, together: 0))
    let worker = QueueWorker(
      [
        QueueHandler(mails) { delivery in
          let running = counts.withLock { counts in
            counts.running += 1
            if delivery.isSuspect { counts.together = max(counts.together, counts.running) }
            return counts.running
          }
          for _ in 0..<10 { await Task.yield() }
          counts.withLock { $0.running -= 1 }
          if delivery.isSuspect { log.withLock { $0[delivery.value] = running } }
        },
        QueueHandler(reports) { _ in await hung.run() },
      ], concurrency: 20, clock: clock)
    async let result: Void = worker.run()
    try await hung.waitForCalls(1)
    // No time passes.
    await yieldUntil { worker.statistics().processed == 40 }
    #expect(log.withLock { $0.count } == 20)
    #expect(counts.withLock { $0.together } == 1)
    hung.end()
    worker.shutDown()
    try await result
  }

  @Test func `a suspect waits for one lease and holds back others for one`() async throws {
    let queue = try await makeQueue()
    try await queue.enqueue([QueueInput(0)])
    try await crash(queue, items: 1, times: 2)
    let first = try #require(try await queue.receive(lease: .seconds(600)))
    try await queue.enqueue([QueueInput(1, priority: 2)])
    let hung = hung
    let starts = Locked<[Int: Duration]>([:])
    let clock = clock
    let begin = clock.now.offset
    let worker = QueueWorker(
      [
        QueueHandler(queue, lease: .seconds(30)) { delivery in
          starts.withLock { $0[delivery.value] = clock.now.offset - begin }
          if delivery.value < 2 { await hung.run() }
        }
      ], clock: clock)
    async let result: Void = worker.run()
    // The second item runs and has no time limit. The first one is suspect.
    try await hung.waitForCalls(1)
    _ = try await queue.release([first.receipt], after: .zero, countsAsAttempt: false)
    try await queue.enqueue(2)
    // The renewal of both items, and the limit of the wait.
    await clock.advance(by: .seconds(5), whileSleeping: 3) { starts.withLock { $0.count } == 3 }
    let seen = starts.withLock { $0 }
    #expect(seen[1] == .zero)
    let (suspect, next) = (try #require(seen[0]), try #require(seen[2]))
    #expect(suspect >= .seconds(30) && suspect <= .seconds(40), "\(suspect)")
    #expect(next - suspect >= .seconds(30) && next - suspect <= .seconds(40), "\(next)")
    worker.shutDown()
    hung.end()
    try await result
  }

  @Test func `the shutdown is limited`() async throws {
    let queue = try await makeQueue(1)
    try await queue.enqueue((0..<3).map { QueueInput($0) })
    let (hung, gate) = (hung, ManualClock())
    let worker = QueueWorker(
      [
        QueueHandler(queue) { delivery in
          switch delivery.value {
          case 0: try await gate.sleep(for: .seconds(1))  // Ends when it is cancelled.
          case 1: await hung.run()
          default: break
          }
        }
      ], shutdownLimit: .seconds(7), clock: clock)
    let running = Task { try await worker.run() }
    try await gate.waitForSleepers(1)
    try await hung.waitForCalls(1)
    await yieldUntil { worker.statistics().processed == 1 }
    let begin = clock.now.offset
    worker.shutDown()
    let hasEnded = Locked(false)
    async let end: Void = {
      _ = await running.result; hasEnded.withLock { $0 = true }
    }()
    // The renewals of two items and a limit, and then the renewal of one and two limits.
    await clock.advance(by: .seconds(1), whileSleeping: 3) { hasEnded.withLock { $0 } }
    await end
    try await running.value
    let duration = clock.now.offset - begin
    #expect(duration >= .seconds(12) && duration <= .seconds(17), "\(duration)")
    // The first item was given back, and the hung one counts as failed.
    #expect(worker.statistics().givenBack == 1 && worker.statistics().failed == 1)
    #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 1))
    #expect(!worker.health().isRunning && worker.health().hungSlots == 1)
    hung.end()
  }
}
