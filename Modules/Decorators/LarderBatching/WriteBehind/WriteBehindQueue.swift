import Larder

/// What a ``WriteBehindStore`` has accepted, what it writes, and who waits for it: plain state, which the store keeps under
/// a lock.
///
/// Accepted changes wait, the last one to each key, until a *flusher*, which is no caller's task, takes all of them and
/// writes them to the base as one flush. What is accepted meanwhile waits for the next one: changes are never put together
/// with what is being written.
///
/// A *turn* is a caller's own: it begins when nothing is pending, and nothing is accepted until it ends, so that the base
/// has everything and the caller may read and write there. Writes for which there is no room, and turns, wait in one line.
/// A caller may leave the line until it is served.
///
/// Two things happen to a caller that waits: it comes, and then hands over how it is told of the outcome. Since others run
/// between the two, the outcome may be there first; it is then kept.
struct WriteBehindQueue<Value: Sendable, Caller: Sendable>: Sendable {
  /// The number of a caller who waits.
  enum Ticket: Hashable, Sendable {
    case line(UInt64)
    case drain(UInt64)
  }

  /// What a caller asks for.
  enum Request: Sendable {
    /// A batch that removes no range and is within the limit.
    case write(SizedBatch<Value>)
    case turn
  }

  /// What is to be done when a caller has come.
  enum Arrival: Equatable, Sendable {
    /// The write is accepted, the turn begins, or there is nothing to wait for.
    case begins
    case waits(Ticket)
    /// The queue is closed.
    case refused
    /// The task of the caller is cancelled.
    case cancelled
  }

  /// What is to be done about the flusher.
  enum FlusherCall: Equatable, Sendable {
    case none
    /// It is to be started.
    case start
    /// It waits, and should not any longer.
    case hurry
  }

  /// A caller who is to be told.
  struct Telling: Sendable {
    let caller: Caller
    let outcome: TurnOutcome
  }

  /// What is to be done when something has happened.
  struct Consequences: Sendable {
    /// Who is to be told.
    var tellings: [Telling] = []
    var flusher = FlusherCall.none
    /// What is no longer needed, to be released outside the lock.
    var displaced: [PendingChanges<Value>.Content] = []
  }

  /// What the flusher does next.
  enum FlusherStep: Sendable {
    /// It waits, unless it is told to hurry.
    case wait(Duration)
    /// It writes these changes, of which those of each unit belong together.
    case flush([[Change<Value>]])
    case end
  }

  private enum Flusher { case none, deciding, waiting, flushing }

  private struct Waiting: Sendable {
    let request: Request
    var caller: Caller?
  }

  /// Someone who waits until something is written.
  private struct Drain: Sendable {
    /// The flush that must be over; all of them, and everyone in the line served, where it is `nil`.
    let flush: UInt64?
    var caller: Caller?
  }

  private let limit: BatchSize
  private let maximumAge: Duration
  private let isFull: @Sendable (StoreError) -> StoreError

  private var pending = PendingChanges<Value>()
  private var pendingSince = Duration.zero
  private var inFlight: PendingChanges<Value>?
  private var failures: [WriteBehindFailure<Value>] = []
  private var failedSize = BatchSize()

  /// The number of the flush that will write what is pending.
  private var nextFlush: UInt64 = 1
  private var isTurn = false
  private var flusher = Flusher.none
  private var line = WaitingLine<Waiting>()
  private var drains = WaitingLine<Drain>()
  /// What became of callers who have not handed over how to tell them.
  private var early: [Ticket: TurnOutcome] = [:]
  private var epoch: UInt64 = 0

  /// Whether no more may come.
  private(set) var isClosed = false

  /// Makes an empty queue.
  ///
  /// - Parameters:
  ///   - limit: The most that is accepted and not written, what failed included.
  ///   - maximumAge: How long changes wait before they are flushed.
  ///   - isFull: The error of a write for which there is no room since failures, of which the first is given, take all.
  init(limit: BatchSize, maximumAge: Duration, isFull: @escaping @Sendable (StoreError) -> StoreError) {
    self.limit = limit
    self.maximumAge = maximumAge
    self.isFull = isFull
  }

  /// Whether nothing goes on and nobody waits; failures may be there.
  var isIdle: Bool {
    isDrained && !isTurn && flusher == .none && line.isEmpty && drains.isEmpty && early.isEmpty
  }

  // MARK: Reading

  /// What is accepted and not yet written, as it is now.
  var view: PendingView<Value> {
    PendingView(inFlight: inFlight ?? PendingChanges(), pending: pending, epoch: epoch)
  }

  /// Whether nothing that was accepted after a view was taken may have reached the base.
  func isCurrent(_ view: PendingView<Value>) -> Bool { view.epoch == epoch }

  /// What is accepted for a key, or `nil` where the base is to be asked.
  subscript(key: StoreKey) -> PendingChanges<Value>.Content? { pending[key] ?? inFlight?[key] }

  /// How much is pending.
  ///
  /// - Parameter now: The time.
  func statistics(at now: Duration) -> WriteBehindStatistics {
    let size = unwrittenSize
    return WriteBehindStatistics(
      pendingChanges: size.changes, pendingBytes: size.bytes, oldestAge: pending.isEmpty ? nil : now - pendingSince,
      waitingCallers: line.count, failedChanges: failedSize.changes)
  }

  /// The error of the first write that failed and was not taken.
  var firstError: StoreError? { failures.first?.error }

  // MARK: Callers

  /// A caller comes.
  ///
  /// - Parameters:
  ///   - request: What it asks for.
  ///   - now: The time.
  ///   - isCancelled: Whether its task is cancelled.
  mutating func arrive(_ request: Request, at now: Duration, isCancelled: Bool) -> (Arrival, Consequences) {
    guard !isClosed else { return (.refused, Consequences()) }
    guard !isCancelled else { return (.cancelled, Consequences()) }
    let number = line.append(Waiting(request: request, caller: nil))
    let consequences = settle(at: now)
    // Where the line has come to it at once, there is nothing to wait for.
    switch early.removeValue(forKey: .line(number)) {
    case nil: return (.waits(.line(number)), consequences)
    case .turn, .finished(nil): return (.begins, consequences)
    case let outcome?:
      early[.line(number)] = outcome
      return (.waits(.line(number)), consequences)
    }
  }

  /// A caller wants to know when everything accepted is written.
  mutating func drain(at now: Duration) -> (Arrival, Consequences) {
    guard !isClosed else { return (.refused, Consequences()) }
    let flush = pending.isEmpty ? nextFlush - 1 : nextFlush
    guard !isOver(flush) else { return (.begins, Consequences()) }
    let number = drains.append(Drain(flush: flush, caller: nil))
    return (.waits(.drain(number)), settle(at: now))
  }

  /// A caller closes the queue, and wants to know when everyone who came before was served and everything is written.
  ///
  /// - Returns: Besides, whether it is the first to close it.
  mutating func close(at now: Duration) -> (Arrival, Consequences, isFirst: Bool) {
    let isFirst = !isClosed
    isClosed = true
    guard !isQuiet else { return (.begins, Consequences(), isFirst) }
    let number = drains.append(Drain(flush: nil, caller: nil))
    return (.waits(.drain(number)), settle(at: now), isFirst)
  }

  /// A caller who waits hands over how it is told of the outcome.
  ///
  /// - Returns: The outcome, where it is there already; the caller is then not kept.
  mutating func attach(_ caller: Caller, to ticket: Ticket) -> TurnOutcome? {
    if let outcome = early.removeValue(forKey: ticket) { return outcome }
    switch ticket {
    case .line(let number): _ = line.modify(number) { $0.caller = caller }
    case .drain(let number): _ = drains.modify(number) { $0.caller = caller }
    }
    return nil
  }

  /// A caller in the line gives up.
  ///
  /// - Returns: What it asked for, to be released outside the lock; `nil` where it is too late.
  mutating func leave(_ ticket: Ticket, at now: Duration) -> (Request, Consequences)? {
    guard case .line(let number) = ticket, let waiting = line.remove(number) else { return nil }
    var consequences = settle(at: now)
    tell(waiting.caller, of: ticket, .finished(CancellationError()), &consequences.tellings)
    return (waiting.request, consequences)
  }

  /// A caller's turn ends.
  mutating func endTurn(at now: Duration) -> Consequences {
    isTurn = false
    return settle(at: now)
  }

  /// Hands over what failed, which then takes no room any more.
  mutating func takeFailures(at now: Duration) -> ([WriteBehindFailure<Value>], Consequences) {
    let taken = failures
    failures = []
    failedSize = BatchSize()
    return (taken, settle(at: now))
  }

  // MARK: The flusher

  /// The flusher asks what to do.
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
    epoch += 1
    return .flush(inFlight?.changesByUnit() ?? [])
  }

  /// The flusher has written what it took, but for what failed.
  mutating func finishFlush(
    failures newFailures: [WriteBehindFailure<Value>], at now: Duration
  ) -> (Consequences, written: PendingChanges<Value>?) {
    flusher = .deciding
    let written = inFlight
    inFlight = nil
    failures += newFailures
    failedSize = newFailures.reduce(into: failedSize) { $0 += $1.size }
    return (settle(at: now), written)
  }

  // MARK: Inside

  private var isDrained: Bool { pending.isEmpty && inFlight == nil }

  /// Whether closing has nothing left to wait for.
  private var isQuiet: Bool { isDrained && !isTurn && line.isEmpty }

  private var unwrittenSize: BatchSize { pending.size + (inFlight?.size ?? BatchSize()) }

  private func isOver(_ flush: UInt64) -> Bool {
    flush < (inFlight == nil ? nextFlush : nextFlush - 1)
  }

  /// Whether somebody waits for what is pending, or there is much of it.
  private var isFlushWanted: Bool {
    if pending.isEmpty { return false }
    // Half of the room is left for what comes while the other half is written.
    let half = BatchSize(changes: max(1, limit.changes / 2), bytes: max(1, limit.bytes / 2))
    return isClosed || !line.isEmpty || !drains.isEmpty || pending.size.reaches(half)
  }

  /// Serves whoever can be served.
  private mutating func settle(at now: Duration) -> Consequences {
    var consequences = Consequences()
    serveLine(at: now, &consequences)
    while let drain = drains.first, drain.flush.map(isOver) ?? isQuiet, let (number, _) = drains.removeFirst() {
      tell(drain.caller, of: .drain(number), .finished(nil), &consequences.tellings)
    }
    if flusher == .none, !pending.isEmpty {
      flusher = .deciding
      consequences.flusher = .start
    } else if flusher == .waiting, isFlushWanted {
      // Once is enough.
      flusher = .deciding
      consequences.flusher = .hurry
    }
    return consequences
  }

  private mutating func serveLine(at now: Duration, _ consequences: inout Consequences) {
    while !isTurn, let first = line.first {
      var outcome = TurnOutcome.finished(nil)
      switch first.request {
      case .turn:
        guard isDrained else { return }
        isTurn = true
        epoch += 1
        outcome = .turn
      case .write(let batch):
        if (unwrittenSize + failedSize + batch.size).fits(in: limit) {
          if pending.isEmpty { pendingSince = now }
          consequences.displaced += pending.add(batch)
        } else if isDrained, let error = firstError {
          outcome = .finished(isFull(error))
        } else {
          return
        }
      }
      guard let (number, waiting) = line.removeFirst() else { return }
      tell(waiting.caller, of: .line(number), outcome, &consequences.tellings)
    }
  }

  private mutating func tell(
    _ caller: Caller?, of ticket: Ticket, _ outcome: TurnOutcome, _ tellings: inout [Telling]
  ) {
    if let caller { tellings.append(Telling(caller: caller, outcome: outcome)) } else { early[ticket] = outcome }
  }
}
