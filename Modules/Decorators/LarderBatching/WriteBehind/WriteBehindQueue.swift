import Larder

/// The accepted batches of a ``WriteBehindStore`` and its waiting callers.
///
/// This is plain state that the store keeps under a lock.
///
/// Accepted batches are pending until a *flusher*, which is not the task of any caller, takes all of them and writes
/// them to the base in one flush. Batches that are accepted during a flush wait for the next one. They are never joined
/// with a batch that is being written.
///
/// Batches that failed with an error that a retry may mend are *retained*. They are older than the pending ones, and the
/// flusher tries them again, alone, after a delay. If nothing could be written, the base is *down*. Then the flusher also
/// tries nothing else until the delay is over.
///
/// A *turn* gives a caller exclusive access to the base. It begins when nothing is unwritten, and nothing is accepted
/// until it ends, so the base is complete and the caller may read and write it. Turns, and writes for which there is no
/// room, wait in one wait queue. A *drain* waits until accepted batches are written. A caller may leave its wait queue
/// until it is served.
struct WriteBehindQueue<Value: Sendable, Caller: Sendable>: Sendable {
  private enum Flusher { case none, deciding, waiting, flushing }

  private struct Waiting: Sendable {
    let request: Request
    let caller: Caller
  }

  /// A caller that waits until accepted batches are written.
  private struct Drain: Sendable {
    /// The flush to wait for, or `nil` to wait for all flushes and all waiters.
    let flush: UInt64?
    /// The scope of the changes to wait for.
    var scope = ChangeScope.all
    /// A Boolean value that indicates whether the caller waits as long as the base is down.
    var isPatient = true
    let caller: Caller
  }

  private let limit: BatchSize
  private let maximumAge: Duration
  private let retries: WriteBehindRetryPolicy
  private let errors: WriteBehindErrors

  private var pending = PendingChanges<Value>()
  private var inFlight: PendingChanges<Value>?
  private var retained = PendingChanges<Value>()
  private var failures: [WriteBehindFailure<Value>] = []
  private var failedSize = BatchSize()
  private var leftovers = PendingChanges<Value>()

  /// The number of the flush that will write the pending batches.
  private var nextFlush: UInt64 = 1
  /// A Boolean value that indicates whether retained batches in flight are tried again.
  private var isRetrying = false
  /// A Boolean value that indicates whether pending batches are in flight.
  private var isFlushing = false
  private var retryTime = Duration.zero
  private var isBaseDown = false
  private var isTurn = false
  private var flusher = Flusher.none
  private var waiters = WaitQueue<Waiting>()
  private var drains = WaitQueue<Drain>()

  /// The number of times in a row that retained batches were tried and some of them failed.
  private(set) var failedAttempts = 0

  /// The error with which retained batches failed last, or `nil` if there aren't any.
  private(set) var retriedError: StoreError?

  /// A Boolean value that indicates whether new callers are refused.
  private(set) var isClosed = false

  /// A Boolean value that indicates whether closing has reached its limit, so nothing is written any more.
  private(set) var isAbandoned = false

  /// Creates an empty queue.
  ///
  /// - Parameters:
  ///   - limit: The maximum size of the changes that are accepted and not yet written, including failed ones.
  ///   - maximumAge: The time that changes wait before they are flushed.
  ///   - retries: The delays of retries.
  ///   - errors: The errors of callers.
  init(limit: BatchSize, maximumAge: Duration, retries: WriteBehindRetryPolicy, errors: WriteBehindErrors) {
    self.limit = limit
    self.maximumAge = maximumAge
    self.retries = retries
    self.errors = errors
  }

  /// A Boolean value that indicates whether no work is in progress and no caller waits.
  ///
  /// There may be failures.
  var isIdle: Bool {
    isDrained && !isTurn && flusher == .none && waiters.isEmpty && drains.isEmpty
  }

  // MARK: Reading

  /// Returns whether no accepted change in a scope is unwritten.
  func isWritten(in scope: ChangeScope) -> Bool {
    !pending.overlaps(scope) && !(inFlight?.overlaps(scope) ?? false) && !retained.overlaps(scope)
  }

  /// The accepted change of a key, or `nil` if the base has its value.
  subscript(key: StoreKey) -> PendingChanges<Value>.Content? { pending[key] ?? inFlight?[key] ?? retained[key] }

  /// Returns the statistics of the pending writes.
  ///
  /// - Parameter now: The current time.
  func statistics(at now: Duration) -> WriteBehindStatistics {
    let size = unwrittenSize
    let times = [pending, inFlight, retained].compactMap { $0?.batches.first?.acceptedAt }
    return WriteBehindStatistics(
      pendingChanges: size.changes, pendingBytes: size.bytes, oldestAge: times.min().map { now - $0 },
      waitingCallers: waiters.count, failedChanges: failedSize.changes, failedAttempts: failedAttempts)
  }

  /// The error of the first failure that was not yet taken.
  var firstError: StoreError? { failures.first?.error }

  // MARK: Callers

  /// Admits a caller.
  ///
  /// - Parameters:
  ///   - request: The request of the caller.
  ///   - caller: The caller. It is resumed later if it has to wait.
  ///   - now: The current time.
  mutating func arrive(_ request: Request, _ caller: Caller, at now: Duration) -> (Arrival, Consequences) {
    guard !isClosed else { return (.refused, Consequences()) }
    if case .turn = request, let turnError { return (.fails(turnError), Consequences()) }
    var arrival = Arrival.begins
    if waiters.isEmpty, let outcome = serve(request, at: now) {
      if case .finished(let error?) = outcome { arrival = .fails(error) }
    } else {
      arrival = .waits(waiters.append(Waiting(request: request, caller: caller)))
    }
    return (arrival, settle(at: now))
  }

  /// Admits a caller that waits until everything accepted in a scope is written or given up.
  ///
  /// - Parameters:
  ///   - scope: The scope of the changes to wait for.
  ///   - isPatient: A Boolean value that indicates whether the caller waits as long as the base is down, rather than
  ///     fail after some retries.
  ///   - caller: The caller.
  ///   - now: The current time.
  mutating func drain(
    _ scope: ChangeScope, isPatient: Bool, _ caller: Caller, at now: Duration
  ) -> (Arrival, Consequences) {
    guard !isClosed else { return (.refused, Consequences()) }
    let flush = pending.isEmpty ? nextFlush - 1 : nextFlush
    let drain = Drain(flush: flush, scope: scope, isPatient: isPatient, caller: caller)
    switch outcome(of: drain) {
    case .finished(let error?)?: return (.fails(error), Consequences())
    case .some: return (.begins, Consequences())
    case nil: break
    }
    let number = drains.append(drain)
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

  /// Ends the writing of a closed queue.
  ///
  /// The unwritten batches, after a running flush has ended, become leftovers.
  mutating func abandon(at now: Duration) -> Consequences {
    isAbandoned = true
    return settle(at: now, servesDrains: true)
  }

  /// Returns the batches that an abandoned queue has not written, and forgets them.
  mutating func takeLeftovers() -> [SizedBatch<Value>] {
    defer { leftovers = PendingChanges() }
    return leftovers.batches
  }

  /// Removes a waiter that gives up.
  ///
  /// - Returns: The caller and its request, to be released outside the lock, or `nil` if it was already served, and the
  ///   actions to take.
  mutating func leave(_ number: UInt64, at now: Duration) -> ((Caller, Request)?, Consequences) {
    guard let waiting = waiters.remove(number) else { return (nil, Consequences()) }
    // Only closing waits for waiters.
    return ((waiting.caller, waiting.request), settle(at: now, servesDrains: isClosed))
  }

  /// Removes a caller that gives up waiting for a drain.
  ///
  /// - Returns: The caller, or `nil` if it was already resumed.
  mutating func leaveDrain(_ number: UInt64) -> Caller? { drains.remove(number)?.caller }

  /// Ends a caller's turn.
  mutating func endTurn(at now: Duration) -> Consequences {
    isTurn = false
    return settle(at: now, servesDrains: true)
  }

  /// Returns the failures and frees their space.
  mutating func takeFailures(at now: Duration) -> ([WriteBehindFailure<Value>], Consequences) {
    let taken = failures
    failures = []
    failedSize = BatchSize()
    return (taken, settle(at: now))
  }

  /// Keeps a failure until it is taken.
  mutating func add(_ failure: WriteBehindFailure<Value>) {
    failures.append(failure)
    failedSize += failure.size
  }

  // MARK: The flusher

  /// Returns the next step of the flusher.
  mutating func nextFlusherStep(at now: Duration) -> FlusherStep {
    if !retained.isEmpty, now >= retryTime {
      isRetrying = true
      return flush(with: retained.take(), flushesPending: isBaseDown)
    }
    let retryDelay = retained.isEmpty ? nil : retryTime - now
    guard let oldest = pending.batches.first, !isBaseDown else {
      flusher = retryDelay == nil ? .none : .waiting
      return retryDelay.map { .wait($0) } ?? .end
    }
    let age = now - oldest.acceptedAt
    guard isFlushWanted || age >= maximumAge else {
      flusher = .waiting
      return .wait(min(maximumAge - age, retryDelay ?? maximumAge))
    }
    return flush(with: PendingChanges(), flushesPending: true)
  }

  /// Begins a flush.
  private mutating func flush(with retried: PendingChanges<Value>, flushesPending: Bool) -> FlusherStep {
    flusher = .flushing
    isFlushing = flushesPending
    if !flushesPending {
      inFlight = retried
    } else if retried.isEmpty {
      inFlight = pending
    } else {
      var all = retried
      all.add(pending.batches)
      inFlight = all
    }
    if flushesPending {
      pending = PendingChanges()
      nextFlush += 1
    }
    return .flush(
      inFlight?.batches ?? [], retained: retained.batches, isolatesErrors: failedAttempts > retries.readRetries)
  }

  /// Ends a flush.
  mutating func finishFlush(_ result: FlushResult, at now: Duration) -> Consequences {
    flusher = .deciding
    for failure in result.failures { add(failure) }
    let released = [inFlight.take(), retained].compactMap { $0 }
    // Changes that joined older retained ones wait for the retry of these.
    let isNewAttempt = isRetrying || retained.isEmpty
    (isRetrying, isFlushing) = (false, false)
    retained = result.retained
    isBaseDown = result.isBaseDown && !retained.isEmpty
    if retained.isEmpty {
      (failedAttempts, retriedError) = (0, nil)
    } else if let error = result.error {
      retriedError = error
      if isNewAttempt {
        failedAttempts += 1
        retryTime = now + retries.delay(before: failedAttempts - 1)
      }
    }
    var consequences = settle(at: now, servesDrains: true)
    consequences.released += released
    return consequences
  }

  // MARK: Serving

  private var isDrained: Bool { pending.isEmpty && inFlight == nil && retained.isEmpty }

  /// A Boolean value that indicates whether closing has nothing left to wait for.
  private var isQuiet: Bool { isDrained && !isTurn && waiters.isEmpty }

  private var unwrittenSize: BatchSize { pending.size + (inFlight?.size ?? BatchSize()) + retained.size }

  /// A Boolean value that indicates whether callers that need the base fail rather than wait.
  private var isPatienceOver: Bool { failedAttempts > retries.readRetries }

  /// The error of callers that wait for a turn, or `nil` if they continue to wait.
  private var turnError: StoreError? {
    guard !isDrained, isPatienceOver, let retriedError else { return nil }
    return errors.baseDown(retriedError)
  }

  /// Returns the outcome of a caller that waits until batches are written, or `nil` if it continues to wait.
  private func outcome(of drain: Drain) -> TurnOutcome? {
    guard let flush = drain.flush else { return isQuiet ? .finished(nil) : nil }
    if isAbandoned && inFlight == nil { return .finished(errors.closed) }
    let retained = isRetrying ? inFlight ?? self.retained : self.retained
    let isTried = flush < (isFlushing ? nextFlush - 1 : nextFlush)
    let isStuck = retained.overlaps(drain.scope)
    if isTried && !isStuck { return .finished(nil) }
    guard !drain.isPatient, isPatienceOver, isBaseDown || isStuck, let retriedError else { return nil }
    return .finished(errors.baseDown(retriedError))
  }

  /// A Boolean value that indicates whether a caller waits for the pending changes or they fill half of the limit.
  private var isFlushWanted: Bool {
    if pending.isEmpty || isBaseDown { return false }
    // The other half is left for changes that arrive during the flush.
    let half = BatchSize(changes: max(1, limit.changes / 2), bytes: max(1, limit.bytes / 2))
    return isClosed || !waiters.isEmpty || !drains.isEmpty || pending.size.reaches(half)
  }

  /// Serves all callers that can be served, and returns the actions to take.
  ///
  /// - Parameters:
  ///   - now: The current time.
  ///   - servesDrains: A Boolean value that indicates whether a drain may be over, or turns may fail. Any number of
  ///     them may wait. Defaults to `false`.
  private mutating func settle(at now: Duration, servesDrains: Bool = false) -> Consequences {
    var consequences = Consequences()
    if isAbandoned {
      while let waiting = waiters.removeFirst() {
        consequences.resumptions.append(Resumption(caller: waiting.caller, outcome: .finished(errors.closed)))
      }
      if inFlight == nil {
        leftovers.add(retained.batches + pending.batches)
        consequences.released = [retained, pending]
        (retained, pending) = (PendingChanges(), PendingChanges())
        isBaseDown = false
      }
    }
    // Also behind writes, which wait for room as long as the base is down.
    if servesDrains, let turnError {
      for (number, waiting) in waiters.numbered {
        guard case .turn = waiting.request else { continue }
        _ = waiters.remove(number)
        consequences.resumptions.append(Resumption(caller: waiting.caller, outcome: .finished(turnError)))
      }
    }
    while let first = waiters.first, let outcome = serve(first.request, at: now) {
      waiters.removeFirst()
      consequences.resumptions.append(Resumption(caller: first.caller, outcome: outcome))
    }
    for (number, drain) in servesDrains ? drains.numbered : [] {
      guard let outcome = outcome(of: drain) else { continue }
      _ = drains.remove(number)
      consequences.resumptions.append(Resumption(caller: drain.caller, outcome: outcome))
    }
    if flusher == .none, !pending.isEmpty {
      flusher = .deciding
      consequences.flusher = .start
    } else if flusher == .waiting, isFlushWanted || isDrained {
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
    case .write(var batch):
      if (unwrittenSize + failedSize + batch.size).fits(in: limit) {
        batch.acceptedAt = now
        pending.add(batch)
        return .finished(nil)
      }
      guard isDrained, let error = firstError else { return nil }
      return .finished(errors.full(error))
    }
  }
}
