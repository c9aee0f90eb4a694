public import Larder
import Synchronization

/// A decorator that returns before a write has reached its base: a crash loses what was accepted since the last flush.
///
/// That is at most what ``BatchBounds`` allow, and seldom older than ``maximumAge``. In return a write takes microseconds,
/// and of many writes to one key only the last is made.
///
/// ```swift
/// let positions = try await LMDBStore<Position>(path: "positions").writeBehind()
/// try await positions.setValue(position, forKey: "vehicle:7")   // accepted
/// try await positions.flush()                                   // written
/// ```
///
/// **Reading.** Every operation sees accepted changes at once. A page is one consistent snapshot of the accepted changes
/// and the base, which is read once: scans and writers do not hold each other up. Counting a range first writes what is
/// pending in it. If you read the base itself, for example from another process, you see a write once it has been flushed.
///
/// **Writing.** Everything that waits is written together, in one batch, when it is ``maximumAge`` old, when it takes half
/// of the room that the bounds give, or when somebody waits for it. What a caller wrote in one batch is written in one
/// batch. Where there is no room a write waits until there is, and can be cancelled until it is accepted. An update, the
/// removal of a range and a batch larger than the bounds are made at once in the base, after everything before
/// them has been written, and are as durable when they return as the base makes them.
///
/// **Failures.** Errors that may pass are tried again, as ``RetryPolicy`` says. A batch that fails because of something in
/// it is given up alone: batches before and after it are written, also if they change the same keys. For that reason every
/// accepted batch is kept until it is written. A full disk, or an error of an unknown code, may concern one batch or all of
/// them, so every batch is tried, if need be alone. After any other error, such as a failed sync, nothing is tried again: the
/// rest of that flush is given up. Reads no longer show changes that were given up. They are kept, with the error, until
/// ``takeFailures()``; the handler gets them; and ``flush()``, ``synchronize()`` and ``close()`` throw the first such error
/// as long as it is kept. They take room: if failures leave none, writes are refused with `full`.
///
/// **Closing** writes everything. A store that is dropped without closing it is kept until what was accepted is written.
public final class WriteBehindStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  typealias Queue = WriteBehindQueue<Value, PendingCall>

  /// The store that does the work.
  public let base: Base

  /// How long changes wait before they are written, or, where others are being written then, that long after those.
  public let maximumAge: Duration

  let retries: RetryPolicy
  let clock: any Clock<Duration>
  let onFailure: @Sendable (WriteBehindFailure<Value>) -> Void
  let pause: FlushPause
  let queue: Mutex<Queue>

  private let bounds: BatchBounds<Value>
  private let elapsed: @Sendable () -> Duration

  /// Puts write-behind in front of a store.
  ///
  /// - Parameters:
  ///   - base: The store that does the work.
  ///   - bounds: The most that is accepted and not yet written. Defaults to 10,000 changes.
  ///   - maximumAge: How long changes wait before they are written. Defaults to 100 milliseconds.
  ///   - retries: How often what may succeed later is tried again.
  ///   - clock: What measures time. Defaults to a `ContinuousClock`.
  ///   - onFailure: Gets what was given up, one after another, before anyone who waits for a flush hears of it. It must not
  ///     wait for this store. Defaults to doing nothing.
  public init(
    _ base: Base, bounds: BatchBounds<Value> = BatchBounds(), maximumAge: Duration = .milliseconds(100),
    retries: RetryPolicy = RetryPolicy(), clock: any Clock<Duration> = ContinuousClock(),
    onFailure: @escaping @Sendable (WriteBehindFailure<Value>) -> Void = { _ in }
  ) {
    self.base = base
    self.bounds = bounds
    self.maximumAge = maximumAge
    self.retries = retries
    self.clock = clock
    self.onFailure = onFailure
    elapsed = WriteBehindStore.stopwatch(clock)
    pause = FlushPause(clock: clock)
    let name = base.information.name
    queue = Mutex(
      Queue(limit: bounds.limit, maximumAge: maximumAge) { first in
        StoreError(
          .full, during: .apply, store: name,
          message: "changes that could not be written take up all the room; see to them by takeFailures()",
          underlying: first)
      })
  }

  /// What the base says of itself, but that a write is only accepted, and that maintenance first writes what was.
  public var information: StoreInformation {
    var information = base.information
    if information.acknowledgement != .volatile { information.acknowledgement = .accepted }
    if let maintenance = information.maintenance {
      information.maintenance = WriteBehindMaintenance(base: maintenance) { await self.drain() }
    }
    return information
  }

  /// The time since the store was made.
  var now: Duration { elapsed() }

  private static func stopwatch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  /// How much was accepted and is not yet written.
  public var statistics: WriteBehindStatistics {
    let now = self.now
    return queue.withLock { $0.statistics(at: now) }
  }

  /// Whether nothing goes on and nothing is pending.
  var isIdle: Bool { queue.withLock { $0.isIdle } }

  /// Whether closing has begun.
  var isClosed: Bool { queue.withLock { $0.isClosed } }

  /// Hands over what was given up, and thereby makes room for new writes.
  ///
  /// What to do with it is for the program to decide: write it again, unless it is out of date, or put it elsewhere. It may
  /// be called on a closed store.
  ///
  /// - Returns: The failures since the last call, the first one first.
  public func takeFailures() -> [WriteBehindFailure<Value>] {
    let now = self.now
    let (failures, consequences) = queue.withLock { $0.takeFailures(at: now) }
    carryOut(consequences)
    return failures
  }

  // MARK: Writing

  /// Accepts several changes, all or none of them, to be written later; see ``DataStore/apply(_:)``.
  ///
  /// A batch that removes a range, or is larger than the bounds, is made in the base before this returns.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `closed`; `full` where failures take up all the room; what the base throws for
  ///   a batch that is made at once. `CancellationError` where the task is cancelled before the changes are accepted.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try base.information.check(changes)
    let batch = SizedBatch(changes, bounds: bounds)
    let removesRange = changes.changes.contains { if case .removeAll = $0 { true } else { false } }
    if removesRange || !batch.size.fits(in: bounds.limit) {
      return try await inTurn(during: .apply) { try await base.apply(changes) }
    }
    try await wait(for: .write(batch), during: .apply)
  }

  /// Reads, changes and writes back the values of some keys as one step in the base, after everything before has been
  /// written; see ``DataStore/update(_:_:)``.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try base.information.check(updateOf: keys)
    return try await inTurn(during: .update) { try await base.update(keys, body) }
  }

  /// Writes what was accepted before, and makes it durable.
  ///
  /// - Throws: ``StoreError`` of the first write that was given up and not taken by ``takeFailures()``; what the base throws.
  public func synchronize() async throws {
    try await waitForFlush(during: .synchronize)
    try await base.synchronize()
    try throwFirstError()
  }

  /// Writes everything that was accepted, and closes the base.
  ///
  /// - Throws: ``StoreError`` of the first write that was given up and not taken by ``takeFailures()``, which can still be
  ///   called; what the base throws. The store is closed all the same.
  public func close() async throws {
    let now = self.now
    let call = PendingCall()
    let (arrival, consequences, isFirst) = queue.withLock { $0.close(call, at: now) }
    carryOut(consequences)
    if case .waits = arrival { _ = await call.wait() }
    try await base.close()
    if isFirst { try throwFirstError() }
  }

  // MARK: Waiting

  /// Does something in the base when everything accepted before is written and before anything else is accepted.
  ///
  /// - Parameter changesBase: Whether it may change the base. If it only reads, the task's cancellation is left to the base.
  func inTurn<Result>(
    during operation: StoreOperation, changesBase: Bool = true, _ body: () async throws -> Result
  ) async throws -> Result {
    try await wait(for: .turn(changesBase: changesBase), during: operation, isCancellable: changesBase)
    defer {
      let now = self.now
      carryOut(queue.withLock { $0.endTurn(at: now) })
    }
    return try await body()
  }

  /// Waits until a write is accepted, or until it is the caller's turn, which it then has to end.
  private func wait(
    for request: Queue.Request, during operation: StoreOperation, isCancellable: Bool = true
  ) async throws {
    let now = self.now
    let isCancelled = isCancellable && Task.isCancelled
    let call = PendingCall()
    let (arrival, consequences) = queue.withLock { $0.arrive(request, call, at: now, isCancelled: isCancelled) }
    carryOut(consequences)
    let number: UInt64
    switch arrival {
    case .begins: return
    case .refused: throw base.information.closedError(for: operation)
    case .cancelled: throw CancellationError()
    case .fails(let error): throw error
    case .waits(let place): number = place
    }
    let result = await withTaskCancellationHandler {
      await call.wait()
    } onCancel: {
      guard isCancellable else { return }
      let now = self.now
      guard let (call, _, consequences) = queue.withLock({ $0.leave(number, at: now) }) else { return }
      carryOut(consequences)
      call.end(.finished(CancellationError()))
    }
    if case .finished(let error?) = result { throw error }
  }

  /// Waits until everything accepted before is written or given up.
  func waitForFlush(during operation: StoreOperation) async throws {
    guard await drain() else { throw base.information.closedError(for: operation) }
  }

  /// Waits until everything accepted before is written or given up.
  ///
  /// - Returns: Whether the store is open.
  @discardableResult
  private func drain() async -> Bool {
    let now = self.now
    let call = PendingCall()
    let (arrival, consequences) = queue.withLock { $0.drain(call, at: now) }
    carryOut(consequences)
    switch arrival {
    case .waits: _ = await call.wait()
    case .refused: return false
    case .begins, .cancelled, .fails: break
    }
    return true
  }

  func carryOut(_ consequences: Queue.Consequences) {
    switch consequences.flusher {
    case .none: break
    case .start: Task.detached { await self.flushChanges() }
    case .hurry: pause.end()
    }
    for telling in consequences.tellings { telling.caller.end(telling.outcome) }
  }

  func throwFirstError() throws {
    if let error = queue.withLock({ $0.firstError }) { throw error }
  }
}

extension DataStore {
  /// Returns from writes before they have reached this store: a crash loses what was accepted since the last flush; see
  /// ``WriteBehindStore``.
  ///
  /// - Parameters:
  ///   - bounds: The most that is accepted and not yet written. Defaults to 10,000 changes.
  ///   - maximumAge: How long changes wait before they are written. Defaults to 100 milliseconds.
  ///   - retries: How often what may succeed later is tried again.
  ///   - clock: What measures time. Defaults to a `ContinuousClock`.
  ///   - onFailure: Gets what was given up. Defaults to doing nothing.
  public func writeBehind(
    bounds: BatchBounds<Value> = BatchBounds(), maximumAge: Duration = .milliseconds(100),
    retries: RetryPolicy = RetryPolicy(), clock: any Clock<Duration> = ContinuousClock(),
    onFailure: @escaping @Sendable (WriteBehindFailure<Value>) -> Void = { _ in }
  ) -> WriteBehindStore<Self> {
    WriteBehindStore(
      self, bounds: bounds, maximumAge: maximumAge, retries: retries, clock: clock, onFailure: onFailure)
  }
}
