import Larder

/// What a ``WriteBehindStore`` has accepted, what it writes, and who waits for it: plain state, which the store keeps under
/// a lock.
///
/// Accepted batches wait until a *flusher*, which is no caller's task, takes all of them and writes them to the base as one
/// flush. Batches that are accepted meanwhile wait for the next flush: they are never joined with one that is being written.
///
/// A *turn* is a caller's own: it begins when nothing is pending, and nothing is accepted until it ends, so that the base
/// has everything and the caller may read and write there. Writes for which there is no room, and turns, wait in one line.
/// A caller may leave the line until it is served.
struct WriteBehindQueue<Value: Sendable, Caller: Sendable>: Sendable {
  /// What a caller asks for.
  enum Request: Sendable {
    /// A batch that removes no range and is within the limit.
    case write(SizedBatch<Value>)
    /// A turn that changes the base, or only reads it.
    case turn(changesBase: Bool)
  }

  /// What is to be done when a caller has come.
  enum Arrival: Sendable {
    /// The write is accepted, the turn begins, or there is nothing to wait for.
    case begins
    /// The caller waits, under a number by which it can leave the line.
    case waits(UInt64)
    /// The queue is closed.
    case refused
    /// The task of the caller is cancelled.
    case cancelled
    /// There is no room for the write.
    case fails(StoreError)
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
    /// Changes that are no longer needed, to be released outside the lock.
    var released: [PendingChanges<Value>] = []
    /// What was kept for scans and is no longer needed, to be released outside the lock as well.
    var releasedContents: [SortedMap<PendingChanges<Value>.Content>] = []
  }

  /// What the flusher does next.
  enum FlusherStep: Sendable {
    /// It waits, unless it is told to hurry.
    case wait(Duration)
    /// It writes these batches. Joining them takes time, and is done outside the lock.
    case flush([SizedBatch<Value>])
    case end
  }

  private enum Flusher { case none, deciding, waiting, flushing }

  private struct Waiting: Sendable {
    let request: Request
    let caller: Caller
  }

  /// Someone who waits until something is written.
  private struct Drain: Sendable {
    /// The flush that must be over; all of them, and everyone in the line served, where it is `nil`.
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

  /// The number of the flush that will write what is pending.
  private var nextFlush: UInt64 = 1
  private var isTurn = false
  private var flusher = Flusher.none
  private var line = WaitingLine<Waiting>()
  private var drains = WaitingLine<Drain>()

  /// The scans that read the base now, each with the latest flush that was over when it began.
  private var scans = WaitingLine<UInt64>()
  /// The flushes that were written while they did, without the values that were displaced before.
  private var written: [(flush: UInt64, contents: SortedMap<PendingChanges<Value>.Content>, size: BatchSize)] = []
  private var writtenSize = BatchSize()

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
    isDrained && !isTurn && flusher == .none && line.isEmpty && drains.isEmpty
  }

  // MARK: Reading

  /// Begins a scan, which merges accepted changes with what it reads in the base.
  ///
  /// The base may be changed while it is read. The queue therefore keeps what is written until the scan ends. Laid over the
  /// base as it was at any moment in between, all these changes together give the state at the end of the scan.
  ///
  /// - Returns: A number by which the scan ends, and the changes that the base may lack now.
  mutating func beginScan() -> (number: UInt64, view: PendingView<Value>) {
    (scans.append(inFlight == nil ? nextFlush - 1 : nextFlush - 2), PendingView(layers: unwrittenLayers))
  }

  /// Ends a scan.
  ///
  /// - Returns: All changes that the base may have lacked at some moment of the scan, or `nil` if they are not known because
  ///   the base was changed in another way, a flush failed, or too much was written.
  mutating func endScan(_ number: UInt64) -> PendingView<Value>? {
    guard let start = scans.remove(number) else { return nil }
    let layers = written.reversed().filter { $0.flush > start }.map(\.contents)
    // What is dropped was written during this scan. So it is part of the view, with which it is released outside the lock.
    while let first = written.first, first.flush <= scans.first ?? .max {
      writtenSize -= first.size
      written.removeFirst()
    }
    return PendingView(layers: unwrittenLayers + layers)
  }

  private var unwrittenLayers: [SortedMap<PendingChanges<Value>.Content>] {
    [pending.contents] + (inFlight.map { [$0.contents] } ?? [])
  }

  /// Makes the running scans begin anew.
  private mutating func discardScans(_ consequences: inout Consequences) {
    while scans.removeFirst() != nil {}
    consequences.releasedContents += written.map(\.contents)
    written = []
    writtenSize = BatchSize()
  }

  /// Whether nothing accepted for the keys of a range has still to be written.
  func isWritten(in range: KeyRange) -> Bool {
    pending.contents.count(in: range) == 0 && (inFlight?.contents.count(in: range) ?? 0) == 0
  }

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
  ///   - caller: How it is told, where it waits.
  ///   - now: The time.
  ///   - isCancelled: Whether its task is cancelled.
  mutating func arrive(
    _ request: Request, _ caller: Caller, at now: Duration, isCancelled: Bool
  ) -> (Arrival, Consequences) {
    var consequences = Consequences()
    guard !isClosed else { return (.refused, consequences) }
    guard !isCancelled else { return (.cancelled, consequences) }
    var arrival = Arrival.begins
    if line.isEmpty, let outcome = serve(request, at: now, &consequences) {
      if case .full(let error) = outcome { arrival = .fails(error) }
    } else {
      arrival = .waits(line.append(Waiting(request: request, caller: caller)))
    }
    settle(at: now, &consequences)
    return (arrival, consequences)
  }

  /// A caller wants to know when everything accepted is written.
  mutating func drain(_ caller: Caller, at now: Duration) -> (Arrival, Consequences) {
    var consequences = Consequences()
    guard !isClosed else { return (.refused, consequences) }
    let flush = pending.isEmpty ? nextFlush - 1 : nextFlush
    guard !isOver(flush) else { return (.begins, consequences) }
    let number = drains.append(Drain(flush: flush, caller: caller))
    settle(at: now, &consequences)
    return (.waits(number), consequences)
  }

  /// A caller closes the queue, and wants to know when everyone who came before was served and everything is written.
  ///
  /// - Returns: Besides, whether it is the first to close it.
  mutating func close(_ caller: Caller, at now: Duration) -> (Arrival, Consequences, isFirst: Bool) {
    var consequences = Consequences()
    let isFirst = !isClosed
    isClosed = true
    guard !isQuiet else { return (.begins, consequences, isFirst) }
    let number = drains.append(Drain(flush: nil, caller: caller))
    settle(at: now, &consequences)
    return (.waits(number), consequences, isFirst)
  }

  /// A caller in the line gives up.
  ///
  /// - Returns: The caller, and what it asked for, to be released outside the lock; `nil` where it is too late.
  mutating func leave(_ number: UInt64, at now: Duration) -> (Caller, Request, Consequences)? {
    guard let waiting = line.remove(number) else { return nil }
    var consequences = Consequences()
    settle(at: now, &consequences)
    return (waiting.caller, waiting.request, consequences)
  }

  /// A caller's turn ends.
  mutating func endTurn(at now: Duration) -> Consequences {
    var consequences = Consequences()
    isTurn = false
    settle(at: now, &consequences)
    return consequences
  }

  /// Hands over what failed, which then takes no room any more.
  mutating func takeFailures(at now: Duration) -> ([WriteBehindFailure<Value>], Consequences) {
    let taken = failures
    failures = []
    failedSize = BatchSize()
    var consequences = Consequences()
    settle(at: now, &consequences)
    return (taken, consequences)
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
    return .flush(inFlight?.batches ?? [])
  }

  /// The flusher has written what it took, but for what failed.
  mutating func finishFlush(
    failures newFailures: [WriteBehindFailure<Value>], at now: Duration
  ) -> Consequences {
    flusher = .deciding
    failures += newFailures
    failedSize = newFailures.reduce(into: failedSize) { $0 += $1.size }
    var consequences = Consequences()
    if let changes = inFlight.take() {
      consequences.released.append(changes)
      if !scans.isEmpty {
        written.append((nextFlush - 1, changes.contents, changes.size))
        writtenSize += changes.size
        if !newFailures.isEmpty || !writtenSize.fits(in: limit) { discardScans(&consequences) }
      }
    }
    settle(at: now, &consequences)
    return consequences
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
  private mutating func settle(at now: Duration, _ consequences: inout Consequences) {
    while let first = line.first, let outcome = serve(first.request, at: now, &consequences) {
      line.removeFirst()
      let told: TurnOutcome =
        switch outcome {
        case .accepted: .finished(nil)
        case .turn: .turn
        case .full(let error): .finished(error)
        }
      consequences.tellings.append(Telling(caller: first.caller, outcome: told))
    }
    while let drain = drains.first, drain.flush.map(isOver) ?? isQuiet {
      drains.removeFirst()
      consequences.tellings.append(Telling(caller: drain.caller, outcome: .finished(nil)))
    }
    if flusher == .none, !pending.isEmpty {
      flusher = .deciding
      consequences.flusher = .start
    } else if flusher == .waiting, isFlushWanted {
      // Once is enough.
      flusher = .deciding
      consequences.flusher = .hurry
    }
  }

  private enum Service {
    case accepted
    case turn
    case full(StoreError)
  }

  /// Serves a request that nobody is before.
  ///
  /// - Returns: What became of it, or `nil` where it has to wait.
  private mutating func serve(_ request: Request, at now: Duration, _ consequences: inout Consequences) -> Service? {
    guard !isTurn else { return nil }
    switch request {
    case .turn(let changesBase):
      guard isDrained else { return nil }
      isTurn = true
      if changesBase { discardScans(&consequences) }
      return .turn
    case .write(let batch):
      if (unwrittenSize + failedSize + batch.size).fits(in: limit) {
        if pending.isEmpty { pendingSince = now }
        pending.add(batch)
        return .accepted
      }
      guard isDrained, let error = firstError else { return nil }
      return .full(isFull(error))
    }
  }
}
