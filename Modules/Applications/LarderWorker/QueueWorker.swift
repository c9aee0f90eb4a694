import Larder

/// A consumer of one or more queues that processes several items at the same time.
///
/// ```swift
/// let worker = QueueWorker(
///   [
///     QueueHandler(mails, weight: 3) { try await smtp.send($0.value) },
///     QueueHandler(reports, timeLimit: .seconds(60)) { try await render($0.value) },
///   ],
///   concurrency: 50, rateLimit: QueueRateLimit(100, per: .seconds(1)))
///
/// try await worker.run()  // until worker.shutDown(), or until the queues are closed
/// ```
///
/// The worker leases an item, renews its lease while the closure of its ``QueueHandler`` runs, and acknowledges the item
/// when the closure returns. If the closure throws or exceeds its time limit, the item is released and delivered again
/// after the delay of the retry policy. After its last delivery, the item becomes a dead letter.
///
/// ## Items that crash the process
///
/// An item whose consumers may have crashed is processed alone: no other item runs, and none of its queue is leased
/// at that time. If it crashes the process again, the delivery counts for no other item of the queue, so that it alone
/// becomes a dead letter.
///
/// ## Shutdown
///
/// ``shutDown()`` lets running closures end and takes no further items. To stop immediately, cancel the task that calls
/// ``run()``: the closures are cancelled, and their items are given back without counting the delivery. In both cases,
/// nothing is lost. With the trait `ServiceLifecycle`, a worker is a `Service`, which a `ServiceGroup` shuts down.
public final class QueueWorker: Sendable {
  /// The number of items that are processed at the same time.
  public let concurrency: Int

  /// The limit on the number of items that start in a time, or `nil` for none.
  public let rateLimit: QueueRateLimit?

  private let handlers: [QueueHandler]
  private let clock: any Clock<Duration>
  private let onEvent: (@Sendable (QueueWorkerEvent) -> Void)?
  private let slots: WorkerSlots
  private let rate: Locked<RateSchedule?>
  private let elapsed: ElapsedTime
  private let counters = Locked(QueueWorkerStatistics())
  private let waits = Locked(Waits())

  /// The state of the worker, and the tasks that wait for items or for the rate limit, by the positions of their queues.
  private struct Waits {
    var cancellations: [Int: @Sendable () -> Void] = [:]
    var isShuttingDown = false
    var isRunning = false
  }

  /// The maximum number of items that are leased in one call.
  private static let batchLimit = 64

  /// Creates a worker, which does nothing until it runs.
  ///
  /// - Parameters:
  ///   - handlers: The queues with the closures that process their items.
  ///   - concurrency: The number of items of all queues that are processed at the same time, at least 1; defaults to 10.
  ///   - rateLimit: The limit on the number of items that start in a time. Defaults to `nil`, for none.
  ///   - clock: The clock for time limits, the rate limit and pauses. Defaults to a `ContinuousClock`. Leases and delays
  ///     have the clock of their queue.
  ///   - onEvent: A closure that receives failures and dead letters, for a log. Defaults to `nil`. It must return
  ///     quickly and must not call a queue.
  public init(
    _ handlers: [QueueHandler], concurrency: Int = 10, rateLimit: QueueRateLimit? = nil,
    clock: any Clock<Duration> = ContinuousClock(), onEvent: (@Sendable (QueueWorkerEvent) -> Void)? = nil
  ) {
    self.handlers = handlers
    self.clock = clock
    self.onEvent = onEvent
    self.concurrency = concurrency
    self.rateLimit = rateLimit
    slots = WorkerSlots(limit: concurrency, weights: handlers.map(\.weight))
    rate = Locked(rateLimit.map { RateSchedule($0) })
    elapsed = ElapsedTime(by: clock)
  }

  /// Returns the events since the worker was created.
  public func statistics() -> QueueWorkerStatistics { counters.withLock { $0 } }

  /// Takes no further items, so that ``run()`` returns when the running closures have ended.
  ///
  /// Calling it again is a no-op. A worker that was shut down cannot run again.
  public func shutDown() {
    let cancellations = waits.withLock { waits in
      waits.isShuttingDown = true
      return Array(waits.cancellations.values)
    }
    slots.close()
    for cancel in cancellations { cancel() }
  }

  /// Processes items until the worker is shut down or all queues are closed.
  ///
  /// An error of a queue does not end the worker. It reports the error, waits, and tries again.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if an argument of the worker or of a handler is not as described;
  ///   `conflict` if the worker is running already; `CancellationError` if the task was cancelled, after the items of
  ///   running closures were given back.
  public func run() async throws {
    try check()
    let isFirst = waits.withLock { waits in
      defer { waits.isRunning = true }
      return !waits.isRunning
    }
    guard isFirst else {
      throw StoreError(
        .conflict, during: .receive, store: "QueueWorker",
        message: "the worker is running already; create another worker to run twice as many closures")
    }
    defer { waits.withLock { $0.isRunning = false } }
    let observations = handlers.map(observeDeadLetters)
    defer { for observation in observations { observation.cancel() } }
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { group in
        for number in handlers.indices { group.addTask { await self.work(on: number) } }
      }
    } onCancel: {
      shutDown()
    }
    try Task.checkCancellation()
  }

  private func check() throws {
    func require(_ isValid: Bool, _ message: String) throws {
      guard !isValid else { return }
      throw StoreError(.invalidArgument, during: .receive, store: "QueueWorker", message: message)
    }
    try require(concurrency >= 1, "concurrency must be at least 1, not \(concurrency)")
    if let rateLimit {
      try require(rateLimit.count >= 1, "the count of a rate limit must be at least 1, not \(rateLimit.count)")
      try require(
        rateLimit.interval > .zero, "the interval of a rate limit must be greater than zero, not \(rateLimit.interval)")
    }
    for handler in handlers {
      let weights = QueueHandler.weights
      try require(
        weights.contains(handler.weight),
        "a weight must be between \(weights.lowerBound) and \(weights.upperBound), not \(handler.weight)")
      try require(
        handler.retryPolicy?.isValid ?? true,
        "the durations of a retry policy must not be negative, and its jitter must be between 0 and 1")
      try require(handler.batch >= 1, "a batch must have at least 1 item, not \(handler.batch)")
      try handler.queue.information.check(lease: handler.lease, for: .receive)
      let limit = handler.timeLimit ?? .seconds(1)
      try require(limit > .zero, "a time limit must be greater than zero, not \(limit)")
    }
  }

  private func observeDeadLetters(of handler: QueueHandler) -> StoreObservation {
    let name = handler.queue.information.name
    return handler.queue.observeDeadLetters { [weak self] deadLetter in
      self?.counters.withLock { $0.dead += 1 }
      self?.onEvent?(.dead(queue: name, deadLetter))
    }
  }

  // MARK: Taking items

  /// Takes items of one queue and starts to process them, until there will be no more, and waits for their ends.
  private func work(on number: Int) async {
    let handler = handlers[number]
    await withDiscardingTaskGroup { group in
      var leased: [QueueJob] = []
      while true {
        if leased.isEmpty { leased = await nextJobs(of: number) }
        guard !leased.isEmpty else { break }
        let job = leased.removeFirst()
        let mayStart = await handler.renewing([job] + leased) { await waitForStart(of: job, number) }
        guard mayStart else {
          await giveBack([job] + leased, to: handler)
          break
        }
        if job.isSuspect {
          // No other item of the queue is leased until it has ended, so that a crash is not a delivery of it.
          await perform(job, of: handler)
          continue
        }
        group.addTask { await self.perform(job, of: handler) }
        // A suspect item that is already leased comes first, so that no other one is leased when it runs.
        guard leased.isEmpty else { continue }
        let further = await furtherJobs(of: handler)
        for job in further.withSlots { group.addTask { await self.perform(job, of: handler) } }
        leased += further.others
      }
    }
  }

  /// Waits for an item and leases it, or returns nothing if the worker is shutting down or the queue is closed.
  private func nextJobs(of number: Int) async -> [QueueJob] {
    let handler = handlers[number]
    var failures = 0
    while true {
      let pause = failures == 0 ? .zero : RetryPolicy.ofConsumers.delay(afterAttempt: failures)
      do {
        let next = try await untilShutdown(number) {
          if pause > .zero { try await self.clock.sleep(for: pause) }
          return try await handler.next()
        }
        switch next {
        case .success(let jobs): return jobs
        case .failure(let error):
          // The queue has released the item, so the next one is taken immediately.
          report(error, of: handler)
          failures = 0
        }
      } catch StoreError.Code.closed {
        return []
      } catch {
        guard !waits.withLock({ $0.isShuttingDown }) else { return [] }
        report(error, of: handler)
        failures += 1
      }
    }
  }

  /// Waits for a slot, and then for the time that the rate limit permits.
  ///
  /// - Returns: Whether the job has a slot and may start. If not, the worker is shutting down.
  private func waitForStart(of job: QueueJob, _ number: Int) async -> Bool {
    guard await slots.take(for: number, alone: job.isSuspect) else { return false }
    // With the slot, so that jobs that have waited for slots don't start together.
    let delay = rate.withLock { $0?.reserve(job.receipts.count, at: elapsed.duration) } ?? .zero
    guard delay > .zero else { return true }
    do {
      try await untilShutdown(number) { try await self.clock.sleep(for: delay) }
      return true
    } catch {
      slots.free(1)
      return false
    }
  }

  /// Runs a closure in a task that shutting down cancels.
  private func untilShutdown<Result: Sendable>(
    _ number: Int, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let task = Task { try await body() }
    let isShuttingDown = waits.withLock { waits in
      waits.cancellations[number] = { task.cancel() }
      return waits.isShuttingDown
    }
    if isShuttingDown { task.cancel() }
    return try await task.value
  }

  /// Leases items for the slots that no queue waits for.
  ///
  /// - Returns: The jobs that have a slot, and suspect ones, which must wait for one.
  private func furtherJobs(of handler: QueueHandler) async -> (withSlots: [QueueJob], others: [QueueJob]) {
    // With a rate limit, each item waits for its time before the next one is leased.
    let count = rateLimit == nil ? slots.takeFree(QueueWorker.batchLimit) : 0
    guard count > 0 else { return ([], []) }
    var jobs: [QueueJob] = []
    do {
      jobs = try await handler.receive(count)
    } catch {
      report(error, of: handler)
    }
    let withSlots = jobs.filter { !$0.isSuspect }.prefix(count)
    slots.free(count - withSlots.count)
    return (Array(withSlots), jobs.filter(\.isSuspect))
  }

  // MARK: Processing

  /// Processes an item that has a slot, and frees the slot.
  private func perform(_ job: QueueJob, of handler: QueueHandler) async {
    counters.withLock { $0.running += job.receipts.count }
    defer {
      counters.withLock { $0.running -= job.receipts.count }
      slots.free(1)
    }
    do {
      try await process(job, of: handler)
    } catch {
      if Task.isCancelled {
        await giveBack([job], to: handler)
      } else {
        await release(job, to: handler, after: error)
      }
      return
    }
    do {
      let stale = try await handler.queue.acknowledge(job.receipts)
      counters.withLock { $0.processed += job.receipts.count - stale.count }
      if !stale.isEmpty { report(handler.staleReceipt, of: handler) }
    } catch {
      report(error, of: handler)
    }
  }

  /// Runs the closure of an item, at most until its time limit.
  private func process(_ job: QueueJob, of handler: QueueHandler) async throws {
    guard let limit = handler.timeLimit else {
      return try await handler.queue.renewing(job.receipts, lease: handler.lease) { try await job.process() }
    }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        // Cancelling this task also ends the renewals, so that a closure that ignores the cancellation keeps its slot
        // but not its lease.
        try await handler.queue.renewing(job.receipts, lease: handler.lease) { try await job.process() }
        return true
      }
      group.addTask {
        do {
          try await self.clock.sleep(for: limit)
        } catch {
          // The worker is stopped, or the closure has ended. The end of the closure decides.
        }
        return false
      }
      defer { group.cancelAll() }
      guard try await group.next() == false else { return }
      group.cancelAll()
      // The closure may have succeeded at the same time. Its error is that of the cancellation, so the limit is reported.
      if let hasEnded = try? await group.next(), hasEnded { return }
      throw handler.timeLimitExceeded
    }
  }

  private func release(_ job: QueueJob, to handler: QueueHandler, after failure: any Error) async {
    counters.withLock { counters in
      let count = job.receipts.count
      if StoreError.Code.timedOut ~= failure { counters.timedOut += count } else { counters.failed += count }
    }
    onEvent?(.failed(queue: handler.queue.information.name, attempt: job.attempt, error: failure))
    var generator = SystemRandomNumberGenerator()
    let delay = handler.retryPolicy?.delay(afterAttempt: job.attempt, using: &generator)
    do {
      _ = try await handler.queue.release(job.receipts, after: delay, countsAsAttempt: true)
    } catch {
      // The item is delivered again when its lease ends.
      report(error, of: handler)
    }
  }

  /// Releases items that were not processed, as if they had not been delivered.
  private func giveBack(_ jobs: [QueueJob], to handler: QueueHandler) async {
    do {
      let receipts = jobs.flatMap(\.receipts)
      let stale = try await handler.queue.release(receipts, after: .zero, countsAsAttempt: false)
      counters.withLock { $0.givenBack += receipts.count - stale.count }
    } catch {
      report(error, of: handler)
    }
  }

  private func report(_ error: any Error, of handler: QueueHandler) {
    counters.withLock { $0.queueErrors += 1 }
    onEvent?(.queueFailed(queue: handler.queue.information.name, error: error))
  }
}

extension QueueHandler {
  /// Runs a closure while the leases of items are renewed.
  fileprivate func renewing<Result>(_ jobs: [QueueJob], _ body: () async -> Result) async -> Result {
    await queue.renewing(jobs.flatMap(\.receipts), lease: lease, body)
  }

  /// The error of a closure that exceeded its time limit.
  fileprivate var timeLimitExceeded: StoreError {
    StoreError(
      .timedOut, during: .receive, store: queue.information.name,
      message: "the closure did not end within the time limit of \(timeLimit ?? .zero)", isRetryable: true)
  }

  /// The error of an item that was processed after its lease had ended.
  fileprivate var staleReceipt: StoreError {
    StoreError(
      .staleReceipt, during: .acknowledge, store: queue.information.name,
      message: "the lease ended before the item was processed, so the item is delivered again")
  }
}
