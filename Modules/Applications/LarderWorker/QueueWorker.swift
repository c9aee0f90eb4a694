public import Larder

/// A consumer of one or more queues that processes several items at the same time.
///
/// ```swift
/// let worker = QueueWorker(
///   [
///     QueueHandler(mails, weight: 3) { try await smtp.send($0.value) },
///     QueueHandler(reports, timeLimit: .seconds(60)) { try await render($0.value) },
///   ],
///   concurrency: 50, rateLimit: RateLimit(100, per: .seconds(1)))
///
/// try await worker.run()  // until worker.shutDown(), or until the queues are closed
/// ```
///
/// The worker takes a slot, leases an item, renews its lease while the closure of its ``QueueHandler`` runs, and
/// acknowledges the item when the closure returns. If the closure throws or exceeds its time limit, the item is released and
/// delivered again after the delay of the retry policy. After its last delivery, the item becomes a dead letter.
///
/// ## Leases
///
/// An item without a slot is left to other workers. Only an item that arrives while the worker waits is leased before a slot
/// is taken, and is given back immediately if none is free. If a lease is lost, for example because the process was suspended,
/// its closure is cancelled, and a closure that has not started yet never does. Acknowledging and releasing are repeated
/// after an error that a retry can mend, until the lease ends; see `HeldLeases`.
///
/// ## Closures that don't end
///
/// A closure that was cancelled must end. If it does not within ``cancellationLimit``, it is hung: its item is
/// released, its slot stays taken until the closure ends, and everything else continues. While a hung closure of a
/// single item has not ended, further deliveries of this item fail without running another one, so each such item costs
/// one slot at most. ``health()`` and ``QueueWorkerEvent/slotHung(queue:health:)`` report it. If all slots are hung,
/// nothing can be processed until a closure ends or a new process starts.
///
/// ## Items that crash the process
///
/// An item whose consumers may have crashed is processed alone among the items of its queue: none of them runs or is
/// leased by this worker at that time. If it crashes the process again, the delivery counts for no other item of the
/// queue, so it alone becomes a dead letter. Other queues continue. The item waits for closures that are running, and
/// holds back the next ones, for at most one lease each.
///
/// ## Shutdown
///
/// ``shutDown()`` lets running closures end, for a limited time, and takes no further items. To stop immediately, cancel the
/// task that calls ``run()``: the closures are cancelled, and their items are given back without counting the delivery. In
/// both cases, nothing is lost. With the trait `ServiceLifecycle`, a worker is a `Service`, which a `ServiceGroup` shuts
/// down.
public final class QueueWorker: Sendable {
  /// The time within which a closure must end after its cancellation, which is five seconds.
  public static let cancellationLimit: Duration = .seconds(5)

  /// The number of items that are processed at the same time.
  public let concurrency: Int

  /// The limit on the number of items that this worker starts in a time, or `nil`.
  public let rateLimit: RateLimit?

  /// The time that ``run()`` waits for running closures after ``shutDown()``, or `nil` for no limit.
  public let shutdownLimit: Duration?

  let handlers: [QueueHandler]
  let clock: any Clock<Duration>
  let onEvent: (@Sendable (QueueWorkerEvent) -> Void)?
  let slots: WorkerSlots
  let rate: Locked<RateSchedule?>
  let elapsed: ElapsedTime
  let counters = Locked(QueueWorkerStatistics())
  let jobs = Locked(Jobs())
  private let exitsIfStalled: Bool
  private let waits = Locked(Waits())

  /// The state of the worker, and the tasks that wait for items or for the rate limit, by the positions of their queues.
  private struct Waits {
    var cancellations: [Int: @Sendable () -> Void] = [:]
    var isShuttingDown = false
    var isRunning = false
    var hasStalled = false
  }

  /// Creates a worker, which does nothing until it runs.
  ///
  /// - Parameters:
  ///   - handlers: The queues with the closures that process their items.
  ///   - concurrency: The number of items of all queues that are processed at the same time, at least 1. Defaults to
  ///     10.
  ///   - rateLimit: The limit on the number of items that this worker starts in a time. The items of a batch start together,
  ///     and the next start waits for the time of all of them. Defaults to `nil`. For a limit of several processes,
  ///     pass a `StoreLimiter` to the handlers.
  ///   - shutdownLimit: The time that running closures may continue after ``shutDown()``, which must not be negative, or
  ///     `nil` for no limit. Defaults to 20 seconds. After this time, they are cancelled, and their items are given back.
  ///   - exitsIfStalled: A Boolean value that indicates whether ``run()`` throws if all slots have hung closures, so
  ///     the program can end and be restarted. Defaults to `false`.
  ///   - clock: The clock for time limits, the rate limit and pauses. Defaults to a `ContinuousClock`. Leases and delays
  ///     have the clock of their queue.
  ///   - onEvent: A closure that receives failures and dead letters, for a log. Defaults to `nil`. It must return
  ///     quickly and must not call a queue.
  public init(
    _ handlers: [QueueHandler], concurrency: Int = 10, rateLimit: RateLimit? = nil,
    shutdownLimit: Duration? = .seconds(20), exitsIfStalled: Bool = false,
    clock: any Clock<Duration> = ContinuousClock(), onEvent: (@Sendable (QueueWorkerEvent) -> Void)? = nil
  ) {
    self.handlers = handlers
    self.clock = clock
    self.onEvent = onEvent
    self.concurrency = concurrency
    self.rateLimit = rateLimit
    self.shutdownLimit = shutdownLimit
    self.exitsIfStalled = exitsIfStalled
    slots = WorkerSlots(limit: concurrency, weights: handlers.map(\.weight))
    rate = Locked(rateLimit.map { RateSchedule($0) })
    elapsed = ElapsedTime(by: clock)
  }

  /// Returns the events since the worker was created.
  ///
  /// ```swift
  /// let statistics = worker.statistics()
  /// print(statistics.processed, "processed,", statistics.failed, "failed,", statistics.running, "running")
  /// ```
  public func statistics() -> QueueWorkerStatistics { counters.withLock { $0 } }

  /// Returns whether the worker can process items.
  ///
  /// ```swift
  /// let health = worker.health()
  /// if health.isStalled { print("all \(health.slots) closures hang") }
  /// ```
  public func health() -> QueueWorkerHealth {
    QueueWorkerHealth(
      isRunning: waits.withLock { $0.isRunning }, slots: concurrency, hungSlots: slots.state.hung)
  }

  /// Takes no further items, so ``run()`` returns when the running closures have ended.
  ///
  /// After ``shutdownLimit``, the closures are cancelled, and their items are given back. A closure that does not end within
  /// ``cancellationLimit`` of its cancellation is not waited for. Calling the method again is a no-op. A worker that was
  /// shut down cannot run again.
  ///
  /// ```swift
  /// async let running: Void = worker.run()
  /// worker.shutDown()
  /// try await running  // returns when the running closures have ended
  /// ```
  public func shutDown() {
    let cancellations = waits.withLock { waits in
      waits.isShuttingDown = true
      return Array(waits.cancellations.values)
    }
    slots.close()
    for cancel in cancellations { cancel() }
  }

  /// A Boolean value that indicates whether the worker takes no further items.
  var isShuttingDown: Bool { waits.withLock { $0.isShuttingDown } }

  /// Processes items until the worker is shut down or all queues are closed.
  ///
  /// An error of a queue does not end the worker. It reports the error, waits, and tries again.
  ///
  /// The method does not wait for hung closures. After ``shutDown()``, it returns within ``shutdownLimit`` and twice the
  /// ``cancellationLimit``. After a cancellation, it returns within the latter. It may take longer only if the queue does
  /// not answer.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if an argument of the worker or of a handler is not as described;
  ///   `conflict` if the worker is running already; `timedOut` if all slots have hung closures and the worker was created
  ///   to exit then. `CancellationError` if the task was cancelled, after the items of running closures were given back.
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
      await waitForClosures()
    } onCancel: {
      shutDown()
      stopClosures()
    }
    guard !waits.withLock({ $0.hasStalled }) else {
      throw StoreError(
        .timedOut, during: .receive, store: "QueueWorker",
        message: "all \(concurrency) slots have closures that ignore their cancellation; start a new process")
    }
    try Task.checkCancellation()
  }

  /// Ends the worker if it is to exit when all slots are hung.
  func exitIfStalled() {
    guard exitsIfStalled else { return }
    waits.withLock { $0.hasStalled = true }
    shutDown()
  }

  /// Runs a closure in a task that shutting down cancels.
  func untilShutdown<Result: Sendable>(
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

  private func check() throws {
    func require(_ isValid: Bool, _ message: String) throws {
      guard !isValid else { return }
      throw StoreError(.invalidArgument, during: .receive, store: "QueueWorker", message: message)
    }
    try require(concurrency >= 1, "concurrency must be at least 1, not \(concurrency)")
    let shutdownLimit = shutdownLimit ?? .zero
    try require(shutdownLimit >= .zero, "the time limit of the shutdown must not be negative, but is \(shutdownLimit)")
    if let problem = rateLimit?.problem { try require(false, problem) }
    for handler in handlers {
      let weights = QueueHandler.weights
      try require(
        weights.contains(handler.weight),
        "a weight must be between \(weights.lowerBound) and \(weights.upperBound), not \(handler.weight)")
      try require(
        handler.retryPolicy?.isValid ?? true,
        "the durations of a retry policy must not be negative, and its jitter must be between 0 and 1")
      try require(handler.batch >= 1, "a batch must have at least 1 item, not \(handler.batch)")
      let burst = handler.limiter?.configuration.rate?.burst ?? .max
      try require(
        handler.batch <= burst,
        "a batch of \(handler.batch) items needs a rate limit with at least this burst, not \(burst)")
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
}
