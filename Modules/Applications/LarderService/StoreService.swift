#if ServiceLifecycle
public import Larder
public import ServiceLifecycle

/// A service that opens a store, checks it, repeats work on it, and closes it at the graceful shutdown.
///
/// ```swift
/// let service = StoreService(
///   checkEvery: .seconds(10),
///   tasks: [
///     .compacting(every: .seconds(86_400)),
///     .backingUp(every: .seconds(3600), in: "/backups", keeping: 24) {
///       try await SQLiteStore<[UInt8]>(path: $0, codec: .raw, access: .readOnly)
///     },
///   ],
///   onProblem: { name, error in logger.error("\(name): \(error)") }
/// ) {
///   try await SQLiteStore<[UInt8]>(path: "shop.sqlite", codec: .raw)
/// }
/// let bytes = try await service.open()
///
/// let group = ServiceGroup(
///   configuration: .init(
///     services: [service, QueueWorkerService(worker)], gracefulShutdownSignals: [.sigterm], logger: logger))
/// try await group.run()
/// ```
///
/// ## Order
///
/// A `ServiceGroup` shuts its services down in reverse order, and waits for the end of each. Put this service before those that
/// use the store, so that the store is closed after them. With several stores, put a store before the ones that are built
/// on it.
///
/// ## Health
///
/// ``health()`` is a value for the endpoints of an orchestrator: readiness says whether to send requests, and liveness whether a
/// restart would help. It reads no store, so it answers even if the store does not.
public final class StoreService<Store: DataStore>: Service {
  /// The time from the end of a check to the next one.
  public let checkInterval: Duration

  /// The time within which the store must answer a check.
  public let checkLimit: Duration

  /// The work that the service repeats.
  public let tasks: [StoreTask<Store>]

  private let openingLimit: Duration
  private let clock: any Clock<Duration>
  private let elapsed: ElapsedTime
  private let check: @Sendable (Store) async throws -> Void
  private let onProblem: @Sendable (String, any Error) -> Void
  private let makeStore: @Sendable () async throws -> Store
  private let state: Locked<StoreHealth>
  /// The task that opens the store that all callers share.
  private let opening = Locked<Task<Store, any Error>?>(nil)

  /// Creates a service, without opening the store.
  ///
  /// - Parameters:
  ///   - openingLimit: The time that opening is repeated after retryable errors, such as those of a server that has not
  ///     started yet. Defaults to 30 seconds.
  ///   - checkInterval: The time from the end of a check to the next one. Defaults to 10 seconds.
  ///   - checkLimit: The time within which the store must answer. Defaults to 5 seconds. The store is not ready while a check
  ///     takes longer, or if the last one failed.
  ///   - check: A closure that throws if the store cannot serve. Defaults to one that reads a key that does not exist, which
  ///     does not notice that the store cannot be written.
  ///   - tasks: The work to repeat. Defaults to an empty list.
  ///   - clock: The clock of all durations. Defaults to a `ContinuousClock`.
  ///   - onProblem: A closure that receives each error of opening, of a check and of a task, with `open`, `check` or the name of
  ///     the task. Defaults to one that does nothing. ``health()`` has the last error of each.
  ///   - open: A closure that opens the store.
  public init(
    openingLimit: Duration = .seconds(30), checkEvery checkInterval: Duration = .seconds(10),
    checkLimit: Duration = .seconds(5),
    check: @escaping @Sendable (Store) async throws -> Void = {
      _ = try await $0.value(forKey: "\u{0}larder-check")
    },
    tasks: [StoreTask<Store>] = [], clock: any Clock<Duration> = ContinuousClock(),
    onProblem: @escaping @Sendable (_ name: String, _ error: any Error) -> Void = { _, _ in },
    open: @escaping @Sendable () async throws -> Store
  ) {
    self.openingLimit = openingLimit
    self.checkInterval = checkInterval
    self.checkLimit = checkLimit
    self.check = check
    self.tasks = tasks
    self.clock = clock
    self.onProblem = onProblem
    makeStore = open
    elapsed = ElapsedTime(by: clock)
    state = Locked(StoreHealth(tasks: tasks.map(\.name)))
  }

  /// Returns the condition of the store, without waiting for it.
  ///
  /// ```swift
  /// let health = service.health()
  /// if !health.isReady { logger.warning("\(health.phase): \(health.problem ?? "no problem")") }
  /// ```
  public func health() -> StoreHealth {
    let limit = checkLimit.wholeNanoseconds
    let now = elapsed.nanoseconds
    return state.withLock { $0 }.at(now, limit: limit)
  }

  /// Ends the readiness of the store, but the store still serves.
  ///
  /// A service group ends its services in reverse order, so a store that other services use is the last to hear of a shutdown.
  /// Call this when the shutdown begins, so that a load balancer sends no further requests.
  public func drain() {
    state.withLock { $0.isDraining = true }
  }

  // MARK: Opening and closing

  /// Returns the store, and opens it at the first call.
  ///
  /// ``run()`` calls it too. Call it before to pass the store to other parts of a program. If the service does not run, close the
  /// store with ``close()``.
  ///
  /// - Returns: The store. It is the same for all callers.
  /// - Throws: `StoreError` with `invalidArgument` if an interval is not greater than zero; the error of the closure that
  ///   opens the store.
  public func open() async throws -> Store {
    let task = opening.withLock { opening in
      if let opening { return opening }
      let task = Task { try await self.openRepeatedly() }
      opening = task
      return task
    }
    return try await task.value
  }

  private func openRepeatedly() async throws -> Store {
    let start = elapsed.nanoseconds
    var attempt = 0
    while true {
      do {
        try checkConfiguration()
        let store = try await makeStore()
        state.withLock { $0.opened() }
        return store
      } catch {
        onProblem("open", error)
        attempt += 1
        let delay = RetryPolicy.ofConsumers.delay(afterAttempt: attempt)
        let end = Duration.nanoseconds(elapsed.nanoseconds - start) + delay
        guard (error as? StoreError)?.isRetryable == true, end <= openingLimit else {
          state.withLock { $0.failed("\(error)") }
          throw error
        }
        try await clock.sleep(for: delay)
      }
    }
  }

  private func checkConfiguration() throws {
    let durations =
      [("check interval", checkInterval), ("check limit", checkLimit)] + tasks.map { ($0.name, $0.interval) }
    for (name, duration) in durations where duration <= .zero {
      throw StoreError(
        .invalidArgument, during: .open, store: "service",
        message: "the duration '\(name)' of a store service must be greater than zero, not \(duration)")
    }
  }

  /// Closes the store if it is open, after its running operations.
  ///
  /// - Throws: The errors of closing the store.
  public func close() async throws {
    guard let task = opening.withLock({ $0 }) else { return }
    let store: Store
    do {
      store = try await task.value
    } catch {
      // There is no store to close. The callers of ``open()`` got the error.
      return
    }
    state.withLock { $0.shutDown(.closing) }
    try await store.close()
    state.withLock { $0.shutDown(.closed) }
  }

  // MARK: Running

  /// Opens the store, checks it and runs the tasks until the graceful shutdown or the cancellation of the task, and closes it.
  ///
  /// A shutdown ends the attempts to open the store. The closure that opens it must end when its task is cancelled.
  ///
  /// - Throws: The errors of ``open()`` and of closing the store.
  public func run() async throws {
    guard let store = try await openUntilShutdown() else { return }
    await cancelWhenGracefulShutdown { [self] in
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.repeatCheck(of: store) }
        for index in tasks.indices { group.addTask { await self.repeatTask(index, with: store) } }
      }
    }
    try await close()
  }

  /// Opens the store, or returns `nil` if the shutdown begins before.
  private func openUntilShutdown() async throws -> Store? {
    try await cancelWhenGracefulShutdown { [self] in
      try await withTaskCancellationHandler {
        do {
          return try await open()
        } catch is CancellationError {
          return nil
        }
      } onCancel: {
        opening.withLock { $0 }?.cancel()
      }
    }
  }

  private func repeatCheck(of store: Store) async {
    await repeating(first: .zero, every: checkInterval, named: "check") { [self] in
      let start = elapsed.nanoseconds
      state.withLock { $0.checkBegan = start }
      do {
        try await check(store)
        state.withLock { $0.checked(problem: nil, isClosed: false) }
      } catch let error where !(error is CancellationError) {
        let isClosed = (error as? StoreError)?.code == .closed
        state.withLock { $0.checked(problem: "\(error)", isClosed: isClosed) }
        throw error
      }
    }
  }

  private func repeatTask(_ index: Int, with store: Store) async {
    let task = tasks[index]
    let run = task.makeRun()
    var delay = task.interval
    do {
      delay = try task.firstDelay()
    } catch {
      state.withLock { $0.ran(index, problem: "\(error)") }
      onProblem(task.name, error)
    }
    await repeating(first: delay, every: task.interval, named: task.name) { [self] in
      do {
        try await run(store)
        state.withLock { $0.ran(index, problem: nil) }
      } catch let error where !(error is CancellationError) {
        state.withLock { $0.ran(index, problem: "\(error)") }
        throw error
      }
    }
  }

  /// Runs a closure after a delay and then after each interval, until the task is cancelled.
  private func repeating(
    first: Duration, every interval: Duration, named name: String, _ body: () async throws -> Void
  ) async {
    var delay = first
    while !Task.isCancelled {
      do {
        if delay > .zero { try await clock.sleep(for: delay) }
        delay = interval
        try await body()
      } catch is CancellationError {
        // The sleep or the body ends with the task. A body that cancels itself is repeated.
      } catch {
        onProblem(name, error)
      }
    }
  }
}
#else
public import Larder

// This declaration stands in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `ServiceLifecycle` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"ServiceLifecycle\"])")
public struct StoreService<Store: DataStore> {
  /// Requires the trait `ServiceLifecycle` of the package Larder.
  public init(open: @escaping @Sendable () async throws -> Store) {}
}
#endif
