import Larder

/// The accepted batches of a ``WriteBehindStore`` and its waiting callers.
///
/// This is plain state, which the store keeps under a lock.
///
/// Accepted batches are pending until a *flusher*, which is not the task of any caller, takes all of them and writes
/// them to the base in one flush. Batches that are accepted during a flush wait for the next one. They are never joined
/// with a batch that is being written.
///
/// A *turn* gives a caller exclusive access to the base. It begins when nothing is pending, and nothing is accepted
/// until it ends, so that the base is complete and the caller may read and write it. Turns, and writes for which there
/// is no room, wait in one wait queue. A caller may leave the wait queue until it is served.
struct WriteBehindQueue<Value: Sendable, Caller: Sendable>: Sendable {
  /// A request of a caller.
  enum Request: Sendable {
    /// A batch that contains no range removal and fits the limit.
    case write(SizedBatch<Value>)
    case turn
  }

  /// The answer to an arriving caller.
  enum Arrival: Sendable {
    /// The write is accepted, the turn begins, or there is nothing to wait for.
    case begins
    /// The caller waits, under a number by which it can leave.
    case waits(UInt64)
    /// The queue is closed.
    case refused
    /// There is no room for the write.
    case fails(any Error)
  }

  /// The action to take on the flusher.
  enum FlusherCall: Equatable, Sendable {
    case none
    /// The flusher must be started.
    case start
    /// The flusher waits and must be woken.
    case wake
  }

  /// A caller to resume.
  struct Resumption: Sendable {
    let caller: Caller
    let outcome: TurnOutcome
  }

  /// The actions to take after an event.
  struct Consequences: Sendable {
    /// The callers to resume.
    var resumptions: [Resumption] = []
    var flusher = FlusherCall.none
    /// Changes that are no longer needed, to be released outside the lock.
    var released: PendingChanges<Value>?
  }

  /// The next step of the flusher.
  enum FlusherStep: Sendable {
    /// It waits for a duration or until it is woken.
    case wait(Duration)
    /// It writes these batches. Joining them takes time and is done outside the lock.
    case flush([SizedBatch<Value>])
    case end
  }

  private enum Flusher { case none, deciding, waiting, flushing }

  private struct Waiting: Sendable {
    let request: Request
    let caller: Caller
  }

  /// A caller that waits until accepted batches are written.
  private struct Drain: Sendable {
    /// The flush to wait for, or `nil` to wait for all flushes and all waiters.
    let flush: UInt64?
    let caller: Caller
  }

  private let limit: BatchSize
  private let maximumAge: Duration
  private let isFull: @Sendable (StoreError) -> StoreError

  private var pending = PendingChanges<Value>()
  private var pendingSince = Duration.zero
  private var inFlight: PendingChanges<Value>?
  private var failures: [WriteBehindFailure<Value>] = []
  private var failedSize = BatchSize()

  /// The number of the flush that will write the pending batches.
  private var nextFlush: UInt64 = 1
  private var isTurn = false
  private var flusher = Flusher.none
  private var waiters = WaitQueue<Waiting>()
  private var drains = WaitQueue<Drain>()

  /// Whether new callers are refused.
  private(set) var isClosed = false

  /// Creates an empty queue.
  ///
  /// - Parameters:
  ///   - limit: The maximum size of the changes that are accepted and not yet written, including failed ones.
  ///   - maximumAge: The time that changes wait before they are flushed.
  ///   - isFull: A closure that returns the error of a write for which failures leave no room, given the first of their
  ///     errors.
  init(limit: BatchSize, maximumAge: Duration, isFull: @escaping @Sendable (StoreError) -> StoreError) {
    self.limit = limit
    self.maximumAge = maximumAge
    self.isFull = isFull
  }

  /// Whether no work is in progress and no caller waits.
  ///
  /// There may be failures.
  var isIdle: Bool {
    isDrained && !isTurn && flusher == .none && waiters.isEmpty && drains.isEmpty
  }

  // MARK: Reading

  /// Returns whether no accepted change in a range is unwritten.
  func isWritten(in range: KeyRange) -> Bool {
    pending.contents.count(in: range) == 0 && (inFlight?.contents.count(in: range) ?? 0) == 0
  }

  /// The accepted change of a key, or `nil` if the base has its value.
  subscript(key: StoreKey) -> PendingChanges<Value>.Content? { pending[key] ?? inFlight?[key] }

  /// Returns the statistics of the pending writes.
  ///
  /// - Parameter now: The current time.
  func statistics(at now: Duration) -> WriteBehindStatistics {
    let size = unwrittenSize
    return WriteBehindStatistics(
      pendingChanges: size.changes, pendingBytes: size.bytes, oldestAge: pending.isEmpty ? nil : now - pendingSince,
      waitingCallers: waiters.count, failedChanges: failedSize.changes)
  }

  /// The error of the first failure that was not yet taken.
  var firstError: StoreError? { failures.first?.error }

  // MARK: Callers

  /// Admits a caller.
  ///
  /// - Parameters:
  ///   - request: The request of the caller.
  ///   - caller: The caller, which is resumed later if it has to wait.
  ///   - now: The current time.
  mutating func arrive(_ request: Request, _ caller: Caller, at now: Duration) -> (Arrival, Consequences) {
    guard !isClosed else { return (.refused, Consequences()) }
    var arrival = Arrival.begins
    if waiters.isEmpty, let outcome = serve(request, at: now) {
      if case .finished(let error?) = outcome { arrival = .fails(error) }
    } else {
      arrival = .waits(waiters.append(Waiting(request: request, caller: caller)))
    }
    return (arrival, settle(at: now))
  }

  /// Admits a caller that waits until everything accepted is written.
  mutating func drain(_ caller: Caller, at now: Duration) -> (Arrival, Consequences) {
    guard !isClosed else { return (.refused, Consequences()) }
    let flush = pending.isEmpty ? nextFlush - 1 : nextFlush
    guard !isOver(flush) else { return (.begins, Consequences()) }
    let number = drains.append(Drain(flush: flush, caller: caller))
    return (.waits(number), settle(at: now))
  }

  /// Closes the queue for a caller that waits until all earlier callers were served and everything is written.
  ///
  /// - Returns: The answer, whether the caller is the first to close the queue, and the actions to take.
  mutating func close(_ caller: Caller, at now: Duration) -> ((Arrival, isFirst: Bool), Consequences) {
    let isFirst = !isClosed
    isClosed = true
    guard !isQuiet else { return ((.begins, isFirst), Consequences()) }
    let number = drains.append(Drain(flush: nil, caller: caller))
    return ((.waits(number), isFirst), settle(at: now))
  }

  /// Removes a waiter that gives up.
  ///
  /// - Returns: The caller and its request, to be released outside the lock, or `nil` if it was already served, and the
  ///   actions to take.
  mutating func leave(_ number: UInt64, at now: Duration) -> ((Caller, Request)?, Consequences) {
    guard let waiting = waiters.remove(number) else { return (nil, Consequences()) }
    return ((waiting.caller, waiting.request), settle(at: now))
  }

  /// Ends a caller's turn.
  mutating func endTurn(at now: Duration) -> Consequences {
    isTurn = false
    return settle(at: now)
  }

  /// Returns the failures and frees their space.
  mutating func takeFailures(at now: Duration) -> ([WriteBehindFailure<Value>], Consequences) {
    let taken = failures
    failures = []
    failedSize = BatchSize()
    return (taken, settle(at: now))
  }

  // MARK: The flusher

  /// Returns the next step of the flusher.
  mutating func nextFlusherStep(at now: Duration) -> FlusherStep {
    guard !pending.isEmpty else {
      flusher = .none
      return .end
    }
    let age = now - pendingSince
    guard isFlushWanted || age >= maximumAge else {
      flusher = .waiting
      return .wait(maximumAge - age)
    }
    flusher = .flushing
    inFlight = pending
    pending = PendingChanges()
    nextFlush += 1
    return .flush(inFlight?.batches ?? [])
  }

  /// Ends a flush, whose batches were written except for the failures.
  mutating func finishFlush(
    failures newFailures: [WriteBehindFailure<Value>], at now: Duration
  ) -> Consequences {
    flusher = .deciding
    failures += newFailures
    failedSize = newFailures.reduce(into: failedSize) { $0 += $1.size }
    let written = inFlight.take()
    var consequences = settle(at: now)
    consequences.released = written
    return consequences
  }

  // MARK: Serving

  private var isDrained: Bool { pending.isEmpty && inFlight == nil }

  /// Whether closing has nothing left to wait for.
  private var isQuiet: Bool { isDrained && !isTurn && waiters.isEmpty }

  private var unwrittenSize: BatchSize { pending.size + (inFlight?.size ?? BatchSize()) }

  private func isOver(_ flush: UInt64) -> Bool {
    flush < (inFlight == nil ? nextFlush : nextFlush - 1)
  }

  /// Whether a caller waits for the pending changes or they fill half of the limit.
  private var isFlushWanted: Bool {
    if pending.isEmpty { return false }
    // The other half is left for changes that arrive during the flush.
    let half = BatchSize(changes: max(1, limit.changes / 2), bytes: max(1, limit.bytes / 2))
    return isClosed || !waiters.isEmpty || !drains.isEmpty || pending.size.reaches(half)
  }

  /// Serves all waiters that can be served, and returns the actions to take.
  private mutating func settle(at now: Duration) -> Consequences {
    var consequences = Consequences()
    while let first = waiters.first, let outcome = serve(first.request, at: now) {
      waiters.removeFirst()
      consequences.resumptions.append(Resumption(caller: first.caller, outcome: outcome))
    }
    while let drain = drains.first, drain.flush.map(isOver) ?? isQuiet {
      drains.removeFirst()
      consequences.resumptions.append(Resumption(caller: drain.caller, outcome: .finished(nil)))
    }
    if flusher == .none, !pending.isEmpty {
      flusher = .deciding
      consequences.flusher = .start
    } else if flusher == .waiting, isFlushWanted {
      // It must be woken only once.
      flusher = .deciding
      consequences.flusher = .wake
    }
    return consequences
  }

  /// Serves the first request.
  ///
  /// - Returns: The outcome, or `nil` if the request has to wait.
  private mutating func serve(_ request: Request, at now: Duration) -> TurnOutcome? {
    guard !isTurn else { return nil }
    switch request {
    case .turn:
      guard isDrained else { return nil }
      isTurn = true
      return .turn
    case .write(let batch):
      if (unwrittenSize + failedSize + batch.size).fits(in: limit) {
        if pending.isEmpty { pendingSince = now }
        pending.add(batch)
        return .finished(nil)
      }
      guard isDrained, let error = firstError else { return nil }
      return .finished(isFull(error))
    }
  }
}
