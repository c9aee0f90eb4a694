public import Larder

/// A decorator that returns from a write before it has reached the base, so a crash loses the writes accepted since the
/// last flush.
///
/// The loss is limited to what ``BatchBounds`` allow and is seldom older than ``maximumAge``. In return, a write takes
/// microseconds, and of many writes to one key only the last one reaches the base.
///
/// ```swift
/// let positions = try await LMDBStore<Position>(path: "positions").writeBehind()
/// try await positions.setValue(position, forKey: "vehicle:7")   // accepted
/// try await positions.flush()                                   // written
/// ```
///
/// **Reading.** Every operation sees accepted changes immediately. A page is one consistent snapshot. Scanning or
/// counting a range with pending changes first waits until they are written, while other writes are accepted. If you
/// read the base itself, for example from another process, you see a write only after it has been flushed.
///
/// **Writing.** All pending writes are flushed together, in one batch, when they are ``maximumAge`` old, when they fill
/// half of the bounds, or when a caller waits for them. A batch of a caller stays within one batch. If the bounds are
/// reached, a write waits for room. You can cancel it until it is accepted. An update, a range removal, and a batch
/// larger than the bounds are written directly to the base after all earlier writes. When they return, they are as
/// durable as the base makes them.
///
/// **Outages.** Changes whose error is `isRetryable` stay pending and readable, and are retried without a limit, with
/// the delays of ``WriteBehindRetryPolicy``. Writes are accepted until the bounds are reached, and then wait, as they do
/// for a slow base. If the error concerns only some of the changes, the others are written. After
/// ``WriteBehindRetryPolicy/readRetries`` retries, operations that need the base throw its error, and ``flush()``
/// continues to wait. You can cancel both.
///
/// **Failures.** A change is given up only after an error that a retry cannot mend, or at the age that the policy sets.
/// A batch that fails because of one of its changes is given up alone. The batches before and after it are written, even
/// if they change the same keys. For that reason, every accepted batch is kept until it is written. After an error that
/// concerns every change, such as a failed sync, the rest of that flush is given up. Reads no longer show these changes.
/// They are kept, with their error, until you call ``takeFailures()``, and the failure handler receives them.
/// ``flush()``, ``synchronize()`` and ``close()`` throw the first such error as long as it is kept. Failures count
/// toward the bounds. If they leave no room, writes are refused with `full`.
///
/// **Closing** writes everything, and waits without a limit unless the policy has a
/// ``WriteBehindRetryPolicy/closingTime``. ``close(within:savingTo:)`` saves what it could not write in another store,
/// and ``restoreChanges(from:)`` writes it later. A store that is released without being closed stays alive until its
/// accepted changes are written.
public final class WriteBehindStore<Base: DataStore>: DataStore {
  /// The type of the values in the base.
  public typealias Value = Base.Value

  typealias Queue = WriteBehindQueue<Value, PendingCall>

  /// The store that is decorated.
  public let base: Base

  /// The time that changes wait before they are written, or longer if an earlier flush is still running.
  public let maximumAge: Duration

  let retries: WriteBehindRetryPolicy
  let clock: any Clock<Duration>
  let onFailure: @Sendable (WriteBehindFailure<Value>) -> Void
  let pause: FlushPause

  /// The size of the largest commit.
  private let limit: BatchSize
  let queue: Locked<Queue>

  /// The observers of accepted changes, which reads show from then on, and of those given up, after which reads show the
  /// entries of the base again.
  let observers = StoreObservers()

  let bounds: BatchBounds<Value>
  let errors: WriteBehindErrors
  private let elapsed: ElapsedTime
  let flusher = Locked<Task<Void, Never>?>(nil)

  /// Creates a store that delays writes to another one.
  ///
  /// - Parameters:
  ///   - base: The store to decorate.
  ///   - bounds: The maximum size of the pending writes. Defaults to 10,000 changes.
  ///   - maximumAge: The time that changes wait before they are written. Defaults to 100 milliseconds.
  ///   - retries: The delays and limits of retries. Defaults to retries without a limit, at most a second apart.
  ///   - clock: The clock that measures time. Defaults to a `ContinuousClock`.
  ///   - onFailure: A closure that receives changes that are given up, one failure after another, before any caller that waits
  ///     for a flush is resumed. It must not wait for this store. Defaults to a no-op.
  public init(
    _ base: Base, bounds: BatchBounds<Value> = BatchBounds(), maximumAge: Duration = .milliseconds(100),
    retries: WriteBehindRetryPolicy = WriteBehindRetryPolicy(), clock: any Clock<Duration> = ContinuousClock(),
    onFailure: @escaping @Sendable (WriteBehindFailure<Value>) -> Void = { _ in }
  ) {
    self.base = base
    self.bounds = bounds
    self.maximumAge = maximumAge
    self.retries = retries
    self.clock = clock
    self.onFailure = onFailure
    elapsed = ElapsedTime(by: clock)
    pause = FlushPause(clock: clock)
    let errors = WriteBehindErrors(
      store: base.information.name, closed: base.information.closedError(for: .apply))
    self.errors = errors
    limit = bounds.limit(for: base.information)
    queue = Locked(Queue(limit: limit, maximumAge: maximumAge, retries: retries, errors: errors))
  }

  /// The information of the base, with the durability `accepted` unless the base is volatile.
  public var information: StoreInformation {
    var information = base.information
    if information.durability != .volatile { information.durability = .accepted }
    information.readsMayBeCopies = true
    return information
  }

  /// The time from an arbitrary start.
  var now: Duration { elapsed.duration }

  /// Returns the statistics of the pending writes.
  ///
  /// ```swift
  /// let statistics = positions.statistics()
  /// print(statistics.pendingChanges, "changes wait, the oldest for", statistics.oldestAge ?? .zero)
  /// ```
  public func statistics() -> WriteBehindStatistics {
    let now = self.now
    return queue.withLock { $0.statistics(at: now) }
  }

  /// The error with which pending changes failed last and are being retried, or `nil` if there aren't any.
  ///
  /// ``WriteBehindStatistics/failedAttempts`` is the number of times that they have failed in a row.
  public var retriedError: StoreError? { queue.withLock { $0.retriedError } }

  /// A Boolean value that indicates whether no work is in progress and nothing is pending.
  var isIdle: Bool { queue.withLock { $0.isIdle } }

  /// A Boolean value that indicates whether closing has begun.
  var isClosed: Bool { queue.withLock { $0.isClosed } }

  /// Returns the changes that were given up and frees their space for new writes.
  ///
  /// It is up to you to write them again, unless they are out of date, or to store them elsewhere. You may call this
  /// method on a closed store.
  ///
  /// ```swift
  /// for failure in positions.takeFailures() {
  ///   logger.error("\(failure.changes.count) changes were not written: \(failure.error)")
  /// }
  /// ```
  ///
  /// - Returns: The failures since the last call, the first one first.
  public func takeFailures() -> [WriteBehindFailure<Value>] {
    change { $0.takeFailures(at: $1) }
  }

  // MARK: Writing

  /// Accepts several changes, to be written later as one atomic batch; see `DataStore.apply(_:)`.
  ///
  /// A batch that removes a range or is larger than the bounds is written to the base before this method returns.
  ///
  /// - Throws: `StoreError` with `invalidKey`, `closed`, or `full` if failures fill the bounds; the errors of the
  ///   base for a batch that is written directly; `CancellationError` if the task is cancelled before the changes are
  ///   accepted.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try base.information.check(changes)
    let batch = SizedBatch(changes, bounds: bounds)
    let removesRange = changes.changes.contains { if case .removeAll = $0 { true } else { false } }
    if removesRange || !batch.size.fits(in: limit) {
      return try await inTurn(during: .apply) { try await base.apply(changes) }
    }
    try await wait(for: .write(batch), during: .apply)
    observers.report(changes)
  }

  /// Reads and writes several values as one atomic step in the base, after all earlier writes; see
  /// `DataStore.update(deciding:_:)`.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try base.information.check(updateOf: keys)
    return try await inTurn(during: .update) { try await base.update(deciding: keys, body) }
  }

  /// Writes all accepted changes and ensures that they are durable.
  ///
  /// The method ignores cancellation. During an outage it throws the error of the base after some retries, and the changes
  /// stay pending.
  ///
  /// - Throws: `StoreError` from the first failure not yet taken with ``takeFailures()``; the errors of the base.
  public func synchronize() async throws {
    try await waitForFlush(isCancellable: false, during: .synchronize)
    try await base.synchronize()
    try throwFirstError()
  }

  // MARK: Waiting

  /// Runs a closure on the base after everything accepted has been written and before anything else is accepted.
  func inTurn<Result>(
    during operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    try await wait(for: .turn, during: operation)
    defer { change { ((), $0.endTurn(at: $1)) } }
    return try await body()
  }

  /// Waits until a write is accepted, or until the caller's turn begins, which the caller must then end.
  private func wait(for request: Queue.Request, during operation: StoreOperation) async throws {
    if Task.isCancelled, !isClosed { throw CancellationError() }
    let call = PendingCall()
    try await wait(for: call, change { $0.arrive(request, call, at: $1) }, during: operation) { number in
      change { $0.leave(number, at: $1) }?.0
    }
  }

  /// Waits for a call, if it has to.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - arrival: The answer of the queue to the call.
  ///   - operation: The operation that waits.
  ///   - leave: A closure that takes the call out of the queue if the task is cancelled, or returns `nil` if it must stay.
  private func wait(
    for call: PendingCall, _ arrival: Queue.Arrival, during operation: StoreOperation,
    leave: @Sendable (_ number: UInt64) -> PendingCall?
  ) async throws {
    let number: UInt64
    switch arrival {
    case .begins: return
    case .refused: throw base.information.closedError(for: operation)
    case .fails(let error): throw error
    case .waits(let assigned): number = assigned
    }
    let result = await withTaskCancellationHandler {
      await call.wait()
    } onCancel: {
      leave(number)?.end(.finished(CancellationError()))
    }
    if case .finished(let error?) = result { throw error }
  }

  /// Waits until everything accepted before in a scope is written or given up.
  ///
  /// - Parameters:
  ///   - scope: The scope. Defaults to `all`.
  ///   - isPatient: A Boolean value that indicates whether to wait as long as the base is down, rather than throw its
  ///     error after some retries. Defaults to `false`.
  ///   - isCancellable: A Boolean value that indicates whether to end if the task is cancelled. Defaults to `true`.
  ///   - operation: The operation that waits.
  /// - Throws: `StoreError` with `closed`, or the error of the changes; `CancellationError` if the task is cancelled.
  func waitForFlush(
    of scope: ChangeScope = .all, isPatient: Bool = false, isCancellable: Bool = true,
    during operation: StoreOperation
  ) async throws {
    let call = PendingCall()
    let arrival = change { $0.drain(scope, isPatient: isPatient, call, at: $1) }
    try await wait(for: call, arrival, during: operation) { number in
      isCancellable ? queue.withLock { $0.leaveDrain(number) } : nil
    }
  }

  /// Changes the queue, and carries out what follows.
  ///
  /// - Parameter body: A closure that changes the queue at the given time.
  func change<Result: Sendable>(
    _ body: (inout Queue, _ now: Duration) -> (Result, Queue.Consequences)
  ) -> Result {
    // Read outside the lock, because the clock is the user's.
    let now = self.now
    let (result, consequences) = queue.withLock { body(&$0, now) }
    carryOut(consequences)
    return result
  }

  func carryOut(_ consequences: Queue.Consequences) {
    switch consequences.flusher {
    case .none: break
    case .start: flusher.withLock { $0 = Task.detached { await self.flushChanges() } }
    case .wake: pause.end()
    }
    for resumption in consequences.resumptions { resumption.caller.end(resumption.outcome) }
  }

  func throwFirstError() throws {
    if let error = queue.withLock({ $0.firstError }) { throw error }
  }
}

extension DataStore {
  /// Returns a decorator that returns from writes before they reach this store; see ``WriteBehindStore``.
  ///
  /// A crash loses the writes accepted since the last flush.
  ///
  /// - Parameters:
  ///   - bounds: The maximum size of the pending writes. Defaults to 10,000 changes.
  ///   - maximumAge: The time that changes wait before they are written. Defaults to 100 milliseconds.
  ///   - retries: The delays and limits of retries. Defaults to retries without a limit, at most a second apart.
  ///   - clock: The clock that measures time. Defaults to a `ContinuousClock`.
  ///   - onFailure: A closure that receives changes that are given up. Defaults to a no-op.
  public func writeBehind(
    bounds: BatchBounds<Value> = BatchBounds(), maximumAge: Duration = .milliseconds(100),
    retries: WriteBehindRetryPolicy = WriteBehindRetryPolicy(), clock: any Clock<Duration> = ContinuousClock(),
    onFailure: @escaping @Sendable (WriteBehindFailure<Value>) -> Void = { _ in }
  ) -> WriteBehindStore<Self> {
    WriteBehindStore(
      self, bounds: bounds, maximumAge: maximumAge, retries: retries, clock: clock, onFailure: onFailure)
  }
}

extension WriteBehindStore: FlushableStore {
  /// Waits until all accepted changes have been written to the base; see `FlushableStore`.
  ///
  /// During an outage of the base, the method waits.
  ///
  /// - Throws: `StoreError` from the first failure not yet taken with ``takeFailures()``, or with `closed`;
  ///   `CancellationError` if the task is cancelled, after which the changes stay pending.
  public func flush() async throws {
    try await waitForFlush(isPatient: true, during: .flush)
    try throwFirstError()
  }
}

extension WriteBehindStore: StoreDecorator {
  /// Performs an operation of a capability on the base.
  ///
  /// `setValue` and `touch` wait for all earlier writes. So does a read of an entry to which a change is pending.
  /// Maintenance begins after the accepted writes have reached the base. A purge begins immediately, because it never
  /// removes an entry that was written again.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    switch operation {
    case .apply, .touch:
      return try await inTurn(during: operation, body)
    case .value, .remainingTime:
      if let key { try await flush(.keys([key]), for: operation) }
    case .purgeExpired:
      break
    default:
      // The base itself refuses the operation if it is closed.
      if !isClosed { try await waitForFlush(during: operation) }
    }
    return try await body()
  }
}

extension WriteBehindStore: ExpirableStore where Base: ExpirableStore {
  /// Returns the time until the first of some entries expires, after all pending changes to them; see `ExpirableStore`.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    // The base may not have an entry yet whose insertion is pending.
    try await flush(.keys(keys), for: .remainingTime)
    return try await base.timeUntilExpiry(ofAny: keys)
  }
}

extension WriteBehindStore: ObservableStore where Base: ObservableStore {
  /// Observes the changes that are accepted, the commits of the base, and the changes that are given up; see
  /// `ObservableStore`.
  ///
  /// An accepted change is therefore reported again when it reaches the base.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    let pending = observers.add(range) { event in
      // The base reports its end itself.
      if case .changed = event { observer(event) }
    }
    let committed = base.observe(range, observer)
    return StoreObservation(lag: { committed.lag }) {
      pending.cancel()
      committed.cancel()
    }
  }
}

/// Pending writes are not cached entries, and stay.
extension WriteBehindStore: InvalidatableStore where Base: InvalidatableStore {}
extension WriteBehindStore: MaintainableStore where Base: MaintainableStore {}
