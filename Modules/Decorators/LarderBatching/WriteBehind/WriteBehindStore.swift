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
/// **Reading.** What was accepted is seen at once, in every operation. A page is one consistent snapshot of what was
/// accepted and what the base holds. Counting a range first writes what is pending in it. Whoever reads the base, another
/// process for one, sees a write once it has been flushed.
///
/// **Writing.** Everything that waits is written together, in one batch, when it is ``maximumAge`` old, when it takes half
/// of the room that the bounds give, or when somebody waits for it. What a caller wrote in one batch is written in one
/// batch. Where there is no room a write waits until there is, and can be cancelled until it is accepted. An update, the
/// removal of a range and a batch larger than the bounds are made at once in the base, after everything before
/// them has been written, and are as durable when they return as the base makes them.
///
/// **Failures.** What may succeed later is tried again, as ``RetryPolicy`` says. Of changes that fail for something in
/// them exactly those are given up that fail (with those of the same batch). Anything else that goes wrong, such as a
/// failed sync, is not tried again: all of that flush is given up. What was given up is no longer seen: reads show
/// what the base holds. It is kept, with the error, until ``takeFailures()``; it is told to the handler; and ``flush()``,
/// ``synchronize()`` and ``close()`` throw the first such error as long as it is kept. It takes room: where failures leave
/// none, writes are refused with `full`.
///
/// **Closing** writes everything. A store that is dropped without closing it is kept until what was accepted is written.
public final class WriteBehindStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  private typealias Queue = WriteBehindQueue<Value, PendingCall>

  /// How often a scan is repeated before it waits until everything is written.
  private static var scanAttempts: Int { 3 }

  /// The store that does the work.
  public let base: Base

  /// How long changes wait before they are written, or, where others are being written then, that long after those.
  public let maximumAge: Duration

  private let bounds: BatchBounds<Value>
  private let retries: RetryPolicy
  private let clock: any Clock<Duration>
  private let stopwatch: Stopwatch
  private let onFailure: @Sendable (WriteBehindFailure<Value>) -> Void
  private let pause: GatheringPause
  private let queue: Mutex<Queue>

  /// Puts write-behind in front of a store.
  ///
  /// - Parameters:
  ///   - base: The store that does the work.
  ///   - bounds: The most that is accepted and not yet written; 10,000 changes unless given.
  ///   - maximumAge: How long changes wait before they are written; 100 milliseconds unless given.
  ///   - retries: How often what may succeed later is tried again.
  ///   - clock: What measures time; a `ContinuousClock` unless given.
  ///   - onFailure: Gets what was given up, one after another, before anyone who waits for a flush hears of it. It must not
  ///     wait for this store. Nothing is done unless given.
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
    stopwatch = Stopwatch(clock)
    pause = GatheringPause(clock: clock)
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
    // A write is only accepted, which is not to wait for the base's thread while something is being flushed.
    information.writeExecutor = nil
    if let maintenance = information.maintenance {
      information.maintenance = WriteBehindMaintenance(base: maintenance) { await self.drain() }
    }
    return information
  }

  /// How much was accepted and is not yet written.
  public var statistics: WriteBehindStatistics {
    let now = stopwatch.elapsed
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
    let now = stopwatch.elapsed
    let (failures, consequences) = queue.withLock { $0.takeFailures(at: now) }
    carryOut(consequences)
    return failures
  }

  // MARK: Reading

  /// Reads the value of one key, as it was last accepted; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    let information = base.information
    try information.check(key, for: .value)
    let content = try queue.withLock { queue in
      guard !queue.isClosed else { throw information.closedError(for: .value) }
      return queue[key]
    }
    return switch content {
    case .set(let value): value
    case .removed: nil
    case nil: try await base.value(forKey: key)
    }
  }

  /// Reads the values of several keys as they are at one moment; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try base.information.check(keys, for: .values)
    return try await reading(during: .values) { view in
      let contents = keys.map { view[$0] }
      let missing = zip(keys, contents).filter { $0.1 == nil }.map(\.0)
      guard missing.count < keys.count else { return .current(try await base.values(forKeys: keys)) }
      var found = missing.isEmpty ? [][...] : try await base.values(forKeys: missing)[...]
      let values = contents.map { content -> Value? in
        switch content {
        case .set(let value): value
        case .removed: nil
        case nil: found.popFirst() ?? nil
        }
      }
      return missing.isEmpty ? .current(values) : .merged(values)
    } fromBase: {
      try await base.values(forKeys: keys)
    }
  }

  /// Reads the first entries of a range as they are at one moment; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.information.check(limit: limit, for: .entries)
    return try await reading(during: .entries) { view in
      guard !view.isEmpty(in: range) else {
        return .current(try await base.entries(in: range, limit: limit, order: order))
      }
      let contents = view.contents(in: range, order: order)
      let below = try await base.entries(
        in: range, limit: PendingView<Value>.limit(limit, beside: contents), order: order)
      return .merged(PendingView.entries(below, under: contents, limit: limit, order: order))
    } fromBase: {
      try await base.entries(in: range, limit: limit, order: order)
    }
  }

  /// Reads the first keys of a range as they are at one moment; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.information.check(limit: limit, for: .keys)
    return try await reading(during: .keys) { view in
      guard !view.isEmpty(in: range) else {
        return .current(try await base.keys(in: range, limit: limit, order: order))
      }
      let contents = view.contents(in: range, order: order)
      let below = try await base.keys(
        in: range, limit: PendingView<Value>.limit(limit, beside: contents), order: order)
      return .merged(PendingView<Value>.keys(below, under: contents, limit: limit, order: order))
    } fromBase: {
      try await base.keys(in: range, limit: limit, order: order)
    }
  }

  /// Counts the entries of a range; see ``DataStore/count(in:)``.
  ///
  /// Where changes in the range are pending, everything is written first: what a change adds to the count only the base
  /// knows.
  public func count(in range: KeyRange) async throws -> Int {
    if try view(for: .count).isEmpty(in: range) { return try await base.count(in: range) }
    return try await inTurn(during: .count, isCancellable: false) { try await base.count(in: range) }
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
    if batch.removesRange || !batch.size.fits(in: bounds.limit) {
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
    let now = stopwatch.elapsed
    let call = PendingCall()
    let (arrival, consequences, isFirst) = queue.withLock { $0.close(call, at: now) }
    carryOut(consequences)
    if case .waits = arrival { _ = await call.wait() }
    try await base.close()
    if isFirst { try throwFirstError() }
  }

  // MARK: Waiting

  /// Does something in the base when everything accepted before is written and before anything else is accepted.
  private func inTurn<Result>(
    during operation: StoreOperation, isCancellable: Bool = true, _ body: () async throws -> Result
  ) async throws -> Result {
    try await wait(for: .turn, during: operation, isCancellable: isCancellable)
    defer {
      let now = stopwatch.elapsed
      carryOut(queue.withLock { $0.endTurn(at: now) })
    }
    return try await body()
  }

  /// Waits until a write is accepted, or until it is the caller's turn, which it then has to end.
  private func wait(
    for request: Queue.Request, during operation: StoreOperation, isCancellable: Bool = true
  ) async throws {
    let now = stopwatch.elapsed
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
      let now = stopwatch.elapsed
      guard let (call, _, consequences) = queue.withLock({ $0.leave(number, at: now) }) else { return }
      carryOut(consequences)
      call.end(.finished(CancellationError()))
    }
    if case .finished(let error?) = result { throw error }
  }

  /// Waits until everything accepted before is written or given up.
  private func waitForFlush(during operation: StoreOperation) async throws {
    guard await drain() else { throw base.information.closedError(for: operation) }
  }

  /// Waits until everything accepted before is written or given up.
  ///
  /// - Returns: Whether the store is open.
  @discardableResult
  private func drain() async -> Bool {
    let now = stopwatch.elapsed
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

  private func carryOut(_ consequences: Queue.Consequences) {
    switch consequences.flusher {
    case .none: break
    case .start: Task.detached { await self.flushChanges() }
    case .hurry: pause.end()
    }
    for telling in consequences.tellings { telling.caller.end(telling.outcome) }
  }

  private func throwFirstError() throws {
    if let error = queue.withLock({ $0.firstError }) { throw error }
  }

  // MARK: Merging

  private enum Reading<Result> {
    /// It holds, whatever was written meanwhile.
    case current(Result)
    /// It holds where nothing accepted meanwhile has reached the base.
    case merged(Result)
  }

  private func view(for operation: StoreOperation) throws -> PendingView<Value> {
    try queue.withLock { queue in
      guard !queue.isClosed else { throw base.information.closedError(for: operation) }
      return queue.view
    }
  }

  /// Reads of what is pending and of the base as they are at one moment.
  ///
  /// What the base holds may be newer than what was pending before it was read. It is then read again, and where that
  /// happens time and again, everything is written and the base alone is read.
  ///
  /// Where nothing is pending for what is read, the base alone is right as well: whatever a flush brings into it while it is
  /// read was everything that was accepted when that flush began.
  private func reading<Result>(
    during operation: StoreOperation, _ read: (PendingView<Value>) async throws -> Reading<Result>,
    fromBase: () async throws -> Result
  ) async throws -> Result {
    for _ in 0..<WriteBehindStore.scanAttempts {
      let view = try view(for: operation)
      switch try await read(view) {
      case .current(let result): return result
      case .merged(let result):
        if queue.withLock({ $0.isCurrent(view) }) { return result }
      }
    }
    return try await inTurn(during: operation, isCancellable: false, fromBase)
  }

  // MARK: Flushing

  private func flushChanges() async {
    while true {
      let now = stopwatch.elapsed
      switch queue.withLock({ $0.nextFlusherStep(at: now) }) {
      case .end: return
      case .wait(let duration): await pause.wait(duration)
      case .flush(let units):
        let failures = await write(units)
        for failure in failures { onFailure(failure) }
        let now = stopwatch.elapsed
        let (consequences, written) = queue.withLock { $0.finishFlush(failures: failures, at: now) }
        carryOut(consequences)
        // The values are released here, outside the lock.
        withExtendedLifetime(written) {}
      }
    }
  }

  /// Writes changes, all together where that succeeds.
  ///
  /// - Parameter units: The changes, of which those of each unit belong together.
  /// - Returns: What had to be given up.
  private func write(_ units: [[Change<Value>]]) async -> [WriteBehindFailure<Value>] {
    var failures: [WriteBehindFailure<Value>] = []
    func giveUp(_ part: Range<Int>, _ error: StoreError) {
      let changes = units[part].flatMap { $0 }
      let size = changes.reduce(into: BatchSize()) { $0 += bounds.size(of: $1) }
      failures.append(WriteBehindFailure(changes: ChangeBatch(changes), error: error, size: size))
    }
    var attempt = 0
    var retry = GroupRetry(count: units.count)
    while let part = retry.next() {
      guard let error = await write(units[part], attempt: &attempt) else { continue }
      if error.concernsAChange {
        if !retry.halve(part) { giveUp(part, error) }
        continue
      }
      giveUp(part, part.count == 1 ? error : error.shared())
      // Nothing more is tried; what was not, has not changed anything.
      while let rest = retry.next() { giveUp(rest, error.shared(outcome: .nothingChanged)) }
    }
    return failures
  }

  /// Writes changes together, and again where that may succeed later.
  ///
  /// - Parameters:
  ///   - units: The changes.
  ///   - attempt: How many further attempts this flush has made.
  /// - Returns: Why they could not be written.
  private func write(_ units: ArraySlice<[Change<Value>]>, attempt: inout Int) async -> StoreError? {
    while true {
      do {
        try await base.apply(ChangeBatch(units.flatMap { $0 }))
        return nil
      } catch {
        let error =
          error as? StoreError
          ?? StoreError(
            .ioFailed, during: .flush, store: base.information.name, message: "the changes could not be written",
            underlying: error, outcome: .unknown)
        guard error.isRetryable, error.outcome == .nothingChanged, let delay = retries.delay(before: attempt) else {
          return error
        }
        attempt += 1
        await GatheringPause(clock: clock).wait(delay)
      }
    }
  }
}

extension WriteBehindStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "WriteBehindStore[\(base)]" }
}

extension WriteBehindStore: FlushableStore {
  /// Waits until everything accepted before has been written to the base; see ``FlushableStore/flush()``.
  ///
  /// - Throws: ``StoreError`` of the first write that was given up and not taken by ``takeFailures()``; `closed`.
  public func flush() async throws {
    try await waitForFlush(during: .flush)
    try throwFirstError()
  }
}

extension WriteBehindStore: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime in the base, after everything before has been written; see
  /// ``ExpirableStore/touch(_:lifetime:)``.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    try await inTurn(during: .touch) { try await base.touch(key, lifetime: lifetime) }
  }

  /// Asks the base how long an entry has still to live, where a change to it is pending after writing that; see
  /// ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    if try view(for: .remainingTime)[key] == nil { return try await base.remainingTime(forKey: key) }
    return try await inTurn(during: .remainingTime, isCancellable: false) {
      try await base.remainingTime(forKey: key)
    }
  }

  /// Lets the base remove what has expired, at once: it never removes what was written anew.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await base.purgeExpired(limit: limit)
  }
}

extension WriteBehindStore: InvalidatableStore where Base: InvalidatableStore {
  /// Lets the base forget its copy of one key; see ``InvalidatableStore/invalidate(_:)``.
  ///
  /// What was accepted and not yet written is no copy, and stays.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Lets the base forget all copies; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}
