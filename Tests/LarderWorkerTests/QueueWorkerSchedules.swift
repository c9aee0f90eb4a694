import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Workers in many schedules: closures that ignore their cancellation, items that must run alone, and stores that fail for a time.
///
/// Time passes only while nothing else can happen, so no time is lost to a busy machine.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct QueueWorkerSchedules {
  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>

  /// The queues and the clock of one run, and the closures that the run ends.
  private struct Run: Sendable {
    let hung = HungClosure()
    let clock: ManualClock

    func makeQueue(_ deliveries: Int? = 5) async throws -> Queue {
      try await StoreQueue(
        MemoryStore(), prefix: "q/", codec: .cbor(),
        configuration: StoreQueueConfiguration(
          policy: QueuePolicy(maximumDeliveries: deliveries, retryPolicy: .immediate)),
        environment: .manual(clock))
    }

    /// Delivers the first items of a queue to consumers that crash.
    func crash(_ queue: Queue, items: Int, times: Int) async throws {
      for _ in 0..<times {
        var count = 0
        while count < items {
          let deliveries = try await queue.receive(max: items - count, lease: .seconds(1))
          try check(!deliveries.isEmpty, "an item is missing")
          count += deliveries.count
        }
        clock.advance(by: .seconds(1))
      }
    }

    /// Sleeps in steps of half a second until a condition holds, for five minutes at most.
    ///
    /// - Parameter time: The time since the beginning at which it must hold, or `nil` for any.
    func wait(untilAfter time: Duration? = nil, _ condition: () async throws -> Bool) async throws {
      let (begin, step) = (clock.now.offset, Duration.milliseconds(500))
      while try await !condition() {
        try check(clock.now.offset < begin + .seconds(300), "what the run waits for has not happened")
        try await clock.sleep(for: step)
      }
      let end = clock.now.offset
      if let time { try check(end >= time && end <= time + step, "it happens after \(end)") }
    }
  }

  /// Runs a closure in many schedules, in which no other work runs around locks, because the worker cancels tasks.
  private func runSchedules(
    _ name: String, share: Double = 1, _ body: @escaping @Sendable (Run) async throws -> Void
  ) async throws {
    try await TestSupport.runSchedules(name, share: share, switchesAtLocks: false) { context in
      try await body(Run(clock: context.clock))
    }
  }

  // MARK: Hung closures

  @Test func `a hung closure costs one slot and its item becomes a dead letter`() async throws {
    try await runSchedules("a hung closure", share: 0.2) { run in
      let (hung, clock) = (run.hung, run.clock)
      let (mails, reports) = (try await run.makeQueue(), try await run.makeQueue())
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
      try await run.wait(untilAfter: .seconds(10) + QueueWorker.cancellationLimit) { worker.statistics().dead == 1 }
      // The closure has been called once. Its item has failed immediately in the four other deliveries.
      try check(calls.withLock { $0 } == 1, "\(calls.withLock { $0 }) calls")
      let (health, statistics) = (worker.health(), worker.statistics())
      try check(health.isRunning && health.slots == 2 && health.hungSlots == 1, "\(health)")
      try check(statistics.timedOut == 1 && statistics.failed == 4, "\(statistics)")
      for number in 0..<10 {
        try await mails.enqueue(number)
        try await reports.enqueue(number)
      }
      try await run.wait { worker.statistics().processed == 20 }
      try check(events.withLock { $0.count { $0.contains("1 of 2 are hung") } } == 1, "\(events.withLock { $0 })")
      try check(worker.statistics().running == 1, "\(worker.statistics())")
      hung.end()
      try await run.wait { worker.health().hungSlots == 0 }
      try check(worker.statistics().running == 0, "\(worker.statistics())")
      worker.shutDown()
      try await result
    }
  }

  @Test(arguments: [false, true]) func `a worker whose slots are all hung says so`(exits: Bool) async throws {
    try await runSchedules("a worker whose slots are hung" + (exits ? ", which exits" : ""), share: 0.5) { run in
      let (hung, clock) = (run.hung, run.clock)
      let queue = try await run.makeQueue()
      try await queue.enqueue((0..<5).map { QueueInput($0) })
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
      try await run.wait(untilAfter: .seconds(10) + QueueWorker.cancellationLimit) { stalls.withLock { $0 } == 1 }
      if exits {
        do {
          try await running.value
          throw Wrong("the worker has not failed")
        } catch StoreError.Code.timedOut {
          // The error that it must throw.
        }
        let counts = try await queue.counts()
        try check(counts.leased == 0, "\(counts)")
        try check(!worker.health().isRunning, "the worker still runs")
        hung.end()
      } else {
        try check(worker.health().isStalled, "\(worker.health())")
        try await run.wait { try await queue.counts().leased == 0 }
        // It continues when the closures end. The slot of the first one may fail the item of the other one, until that ends, too.
        hung.end()
        try await run.wait { worker.statistics().processed + worker.statistics().dead == 5 }
        try check(worker.statistics().processed >= 4, "\(worker.statistics())")
        worker.shutDown()
        try await running.value
      }
    }
  }

  @Test func `the shutdown is limited`() async throws {
    try await runSchedules("a shutdown with a hung closure") { run in
      let (hung, clock) = (run.hung, run.clock)
      let queue = try await run.makeQueue(1)
      try await queue.enqueue((0..<3).map { QueueInput($0) })
      let worker = QueueWorker(
        [
          QueueHandler(queue) { delivery in
            switch delivery.value {
            case 0: try await ManualClock().sleep(for: .seconds(1))  // Ends when it is cancelled.
            case 1: await hung.run()
            default: break
            }
          }
        ], shutdownLimit: .seconds(7), clock: clock)
      let running = Task { try await worker.run() }
      try await hung.waitForCalls(1)
      try await run.wait { worker.statistics().processed == 1 && worker.statistics().running == 2 }
      let begin = clock.now.offset
      worker.shutDown()
      try await running.value
      let duration = clock.now.offset - begin
      // The first item was given back, and the hung one counts as failed.
      try check(duration == .seconds(7) + QueueWorker.cancellationLimit, "the shutdown takes \(duration)")
      let (statistics, counts, health) = (worker.statistics(), try await queue.counts(), worker.health())
      try check(statistics.givenBack == 1 && statistics.failed == 1, "\(statistics)")
      try check(counts == QueueCounts(waiting: 1, dead: 1), "\(counts)")
      try check(!health.isRunning && health.hungSlots == 1, "\(health)")
      hung.end()
    }
  }

  // MARK: Items that run alone

  @Test func `suspects hold back no other queue`() async throws {
    try await runSchedules("suspects and another queue", share: 0.2) { run in
      let (hung, clock) = (run.hung, run.clock)
      let (mails, reports) = (try await run.makeQueue(), try await run.makeQueue())
      try await mails.enqueue((0..<20).map { QueueInput($0) })
      try await run.crash(mails, items: 20, times: 2)
      try await mails.enqueue((20..<40).map { QueueInput($0) })
      try await reports.enqueue(0)
      let counts = Locked((running: 0, together: 0, suspects: 0, end: Duration.zero))
      let begin = clock.now.offset
      let worker = QueueWorker(
        [
          QueueHandler(mails) { delivery in
            counts.withLock { counts in
              counts.running += 1
              if delivery.isSuspect { counts.together = max(counts.together, counts.running) }
            }
            for _ in 0..<10 { await Task.yield() }
            counts.withLock { counts in
              counts.running -= 1
              counts.suspects += delivery.isSuspect ? 1 : 0
              counts.end = clock.now.offset
            }
          },
          QueueHandler(reports) { _ in await hung.run() },
        ], concurrency: 20, clock: clock)
      async let result: Void = worker.run()
      try await hung.waitForCalls(1)
      try await run.wait { worker.statistics().processed == 40 }
      let seen = counts.withLock { $0 }
      try check(seen.end == begin && seen.suspects == 20 && seen.together == 1, "\(seen)")
      hung.end()
      worker.shutDown()
      try await result
    }
  }

  @Test func `a suspect waits for one lease and holds back others for one`() async throws {
    try await runSchedules("a suspect and a slow item") { run in
      let (hung, clock) = (run.hung, run.clock)
      let queue = try await run.makeQueue()
      try await queue.enqueue([QueueInput(0)])
      try await run.crash(queue, items: 1, times: 2)
      guard let first = try await queue.receive(lease: .seconds(600)) else { throw Wrong("an item is missing") }
      try await queue.enqueue([QueueInput(1, priority: 2)])
      let starts = Locked<[Int: Duration]>([:])
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
      try await run.wait { starts.withLock { $0.count } == 3 }
      let seen = starts.withLock { $0 }
      try check(seen == [1: .zero, 0: .seconds(30), 2: .seconds(60)], "\(seen)")
      worker.shutDown()
      hung.end()
      try await result
    }
  }

  // MARK: A store that fails for a time

  private struct Failure: Error {}

  /// The store fails longer than a lease while renewals work, or for some time after it has removed the item.
  @Test(arguments: [StoreError.Outcome.nothingChanged, .unknown])
  func `an acknowledgement is repeated until it succeeds`(outcome: StoreError.Outcome) async throws {
    try await runSchedules("an acknowledgement with the outcome \(outcome)") { run in
      let clock = run.clock
      let queue = TroubledQueue(try await run.makeQueue())
      try await queue.enqueue(7)
      let counts = Locked((sent: 0, attempts: 0))
      let end: Duration = outcome == .unknown ? .seconds(3) : .seconds(40)
      let outage: @Sendable (StoreOperation) throws -> Void = { operation in
        guard operation == .acknowledge else { return }
        counts.withLock { $0.attempts += 1 }
        guard clock.now.offset < end else { return }
        throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true, outcome: outcome)
      }
      // The first attempt succeeds if its outcome is unknown, and the next ones find a stale receipt.
      if outcome == .unknown { queue.trouble.after(outage) } else { queue.trouble.before(outage) }
      let worker = QueueWorker(
        [QueueHandler(queue, lease: .seconds(6)) { _ in counts.withLock { $0.sent += 1 } }], clock: clock)
      async let result: Void = worker.run()
      try await run.wait { worker.statistics().processed == 1 }
      worker.shutDown()
      try await result
      let (sent, attempts) = counts.withLock { $0 }
      try check(sent == 1 && attempts > 2, "\(sent) sent in \(attempts) attempts")
      try check(clock.now.offset >= end && clock.now.offset < end + .seconds(6), "it ends after \(clock.now.offset)")
      let (statistics, left) = (worker.statistics(), try await queue.counts())
      try check(left == QueueCounts(), "\(left)")
      try check(statistics.queueErrors == 0 && statistics.leasesLost == 0, "\(statistics)")
    }
  }

  @Test func `a release is repeated until it succeeds`() async throws {
    try await runSchedules("a release in an outage") { run in
      let clock = run.clock
      let queue = TroubledQueue(try await run.makeQueue(1))
      try await queue.enqueue(7)
      let sent = Locked(0)
      queue.trouble.before { operation in
        guard operation == .release, clock.now.offset < .seconds(40) else { return }
        throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true)
      }
      let worker = QueueWorker(
        [
          QueueHandler(queue, lease: .seconds(6)) { _ in
            sent.withLock { $0 += 1 }
            throw Failure()
          }
        ], clock: clock)
      async let result: Void = worker.run()
      try await run.wait { worker.statistics().dead == 1 }
      let end = clock.now.offset
      try check(end >= .seconds(40) && end < .seconds(46), "it ends after \(end)")
      worker.shutDown()
      try await result
      try check(sent.withLock { $0 } == 1, "\(sent.withLock { $0 }) sent")
      try check(worker.statistics().queueErrors == 0, "\(worker.statistics())")
    }
  }

  @Test func `repetition ends with the lease`() async throws {
    try await runSchedules("an outage that does not end") { run in
      let clock = run.clock
      let queue = TroubledQueue(try await run.makeQueue(1))
      try await queue.enqueue(7)
      let last = Locked(Duration.zero)
      queue.trouble.before { operation in
        guard operation == .acknowledge || operation == .extend else { return }
        if operation == .acknowledge { last.withLock { $0 = clock.now.offset } }
        throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true)
      }
      let worker = QueueWorker([QueueHandler(queue, lease: .seconds(6)) { _ in }], clock: clock)
      async let result: Void = worker.run()
      try await run.wait { worker.statistics().queueErrors > 0 }
      worker.shutDown()
      try await result
      let end = last.withLock { $0 }
      try check(end >= .seconds(5) && end <= .seconds(6.1), "the last attempt is after \(end)")
    }
  }
}
