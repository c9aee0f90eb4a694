public import Larder
import Synchronization

/// A decorator that lets many callers share a commit: writes that come while one is being made go together in the next.
///
/// ```swift
/// let store = try await LMDBStore<Order>(path: "orders").batched()
/// try await store.setValue(order, forKey: "order:17")   // durable, as without, but a thousand callers wait for one sync
/// ```
///
/// Nothing else changes: a write returns when it has been committed, with an error of its own where it failed, and reads
/// go to the base, so that nothing is seen which could still fail. A single caller is served directly, in its own task,
/// and does not notice the decorator. There is no timer: what comes while a commit runs makes the next group.
/// Hundreds of callers write in two halves that take turns where that is faster, so that the disk does not wait for them.
///
/// **Order.** Everything happens in the order in which it was asked for: an update comes after the writes before it and
/// before those behind it, and runs in its caller's own task. So do `touch` of a store with expiry; `synchronize`, `flush`
/// and `close` first wait for what came before.
///
/// **Failures.** A batch stays atomic within its group. A group that fails for something in it, with nothing changed (a
/// value that cannot be encoded, a full disk), is tried again in halves, so that exactly the callers concerned fail. What
/// else goes wrong, such as a failed sync, is told to all callers of the group, and nothing is tried again.
///
/// **Cancellation.** A caller may be cancelled as long as its write waits; it then throws `CancellationError`, and the
/// write is not made. A group that is being committed is not stopped by anyone's cancellation.
///
/// **Bounds.** A group is as large as ``BatchBounds`` allow. Whoever comes when more is waiting than goes into the next
/// group waits for a later one: callers are suspended, nothing piles up beyond what they hold themselves.
public final class BatchingStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  private typealias Queue = CommitQueue<QueuedCaller>

  /// The store that does the work.
  public let base: Base

  // The information of the base, which is costly to ask for each time.
  private let checks: StoreInformation

  private let writes: QueuedWrites<Value>
  private let delay: Duration
  private let pause: GatheringPause
  private let stopwatch: Stopwatch
  private let queue: Mutex<Queue>
  private let pace = Mutex(CommitPace())

  // Whether the queue is idle, as far as is known without its lock: who finds it idle asks it, who does not waits.
  private let seemsIdle = Atomic(true)

  /// Puts group commit in front of a store.
  ///
  /// - Parameters:
  ///   - base: The store that does the work.
  ///   - bounds: The most that goes into one commit; 10,000 changes unless given.
  ///   - delay: How long each commit waits for more to come, up to the bounds. With nothing, the default, there is no
  ///     waiting; any other delay is added to the time of every write.
  ///   - clock: What measures the delay, and how long commits take; a `ContinuousClock` unless given.
  @inlinable
  public convenience init(
    _ base: Base, bounds: BatchBounds<Value> = BatchBounds(), delay: Duration = .zero,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    // In the caller's module, which knows the type of the values.
    let checks = base.information
    self.init(
      base, checks: checks, bounds: bounds, writes: QueuedWrites(checks: checks, bounds: bounds), delay: delay,
      clock: clock)
  }

  @usableFromInline
  init(
    _ base: Base, checks: StoreInformation, bounds: BatchBounds<Value>, writes: QueuedWrites<Value>, delay: Duration,
    clock: any Clock<Duration>
  ) {
    self.base = base
    self.checks = checks
    self.writes = writes
    self.delay = delay
    pause = GatheringPause(clock: clock)
    stopwatch = Stopwatch(clock)
    queue = Mutex(Queue(limit: bounds.limit, gathersFirst: delay > .zero))
  }

  /// What the base says of itself.
  public var information: StoreInformation { base.information }

  /// How many callers wait for what is being committed now, to go into a later commit or take a later turn.
  public var waitingCount: Int { queue.withLock { $0.waitingCount } }

  /// Whether nothing goes on and nothing is kept.
  var isIdle: Bool { queue.withLock { $0.isIdle } }

  // MARK: Reading

  /// Reads the value of one key from the base; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)
  }

  /// Reads the values of several keys from the base; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys)
  }

  /// Reads the first entries of a range from the base; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  /// Reads the first keys of a range from the base; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Counts the entries of a range in the base; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  // MARK: Writing

  /// Makes several changes, all or none of them, in one commit with what others write; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    let call = try writes.makeCall(changes)
    guard try await waitForTurn(.write(call.size), call, during: .apply) else { return }
    defer { endTurn() }
    try await base.apply(changes)
  }

  /// Reads, changes and writes back the values of some keys as one step, after what came before; see
  /// ``DataStore/update(_:_:)``.
  ///
  /// It is a commit of its own.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try checks.check(updateOf: keys)
    return try await inTurn(during: .update) { try await base.update(keys, body) }
  }

  /// Waits for what came before, and makes it durable.
  public func synchronize() async throws {
    try await waitForEarlier(during: .synchronize)
    try await base.synchronize()
  }

  /// Commits what came before, and closes the base.
  public func close() async throws {
    // The queue is closed to others, not to those who close it again.
    try await waitForEarlier(during: .close)
    try await base.close()
  }

  // MARK: Waiting

  /// Does something of one's own when all that came before is over, and before anything that comes later.
  private func inTurn<Result>(
    during operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    _ = try await waitForTurn(.turn, QueuedCall(), during: operation)
    defer { endTurn() }
    return try await body()
  }

  /// Waits until it is the caller's turn, or until its write has been made by the committer.
  ///
  /// - Returns: Whether it is the caller's turn, which it then has to end.
  /// - Throws: `CancellationError` where the task is cancelled while it waits; ``StoreError``: `closed`; what the committer
  ///   met.
  private func waitForTurn(
    _ request: Queue.Request, _ call: QueuedCall, during operation: StoreOperation
  ) async throws -> Bool {
    if seemsIdle.load(ordering: .relaxed), withQueue({ $0.begin(request) }) { return true }
    let outcome = await withTaskCancellationHandler {
      await wait(as: call, during: operation) { $0.arrive(request, $1) }
    } onCancel: {
      if let number = call.cancel() { leave(number) }
    }
    switch outcome {
    case .turn: return true
    case .finished(nil): return false
    case .finished(let error?): throw error
    }
  }

  /// Waits until everything that came before is over, whether or not the task is cancelled.
  private func waitForEarlier(during operation: StoreOperation) async throws {
    let outcome = await wait(as: QueuedCall(), during: operation) { queue, caller in
      operation == .close ? queue.close(caller) : queue.arrive(.barrier, caller)
    }
    if case .finished(let error?) = outcome { throw error }
  }

  /// Comes into the queue, and waits there.
  ///
  /// The continuation is there first, so that whoever takes the caller out of the queue can resume it. The task goes on only
  /// when the closure has returned, so the call is there until then, however early that is.
  private func wait(
    as call: QueuedCall, during operation: StoreOperation,
    _ arrive: (inout Queue, QueuedCaller) -> Queue.Arrival
  ) async -> TurnOutcome {
    // The queue does not keep it.
    defer { withExtendedLifetime(call) {} }
    return await withUnsafeContinuation { continuation in
      let caller = QueuedCaller(continuation, call)
      switch withQueue({ arrive(&$0, caller) }) {
      case .begins: caller.tell(.turn)
      case .refused: caller.tell(.finished(checks.closedError(for: operation)))
      case .waits(let number, let committerCall):
        if call.enter(number) { leave(number) }
        carryOut(committerCall)
      }
    }
  }

  private func leave(_ number: UInt64) {
    withQueue { $0.leave(number) }?.tell(.finished(CancellationError()))
  }

  private func endTurn() {
    let next = withQueue { $0.endTurn() }
    serve(next)
    if next.startsCommitter { startCommitter() }
  }

  private func withQueue<Result: Sendable>(_ body: (inout Queue) -> Result) -> Result {
    queue.withLock { queue in
      let result = body(&queue)
      // It hardly ever changes, and to store it takes it out of the caches of all other cores.
      if seemsIdle.load(ordering: .relaxed) != queue.isIdle { seemsIdle.store(queue.isIdle, ordering: .relaxed) }
      return result
    }
  }

  private func serve(_ next: Queue.Next) {
    for caller in next.passed { caller.tell(.finished(nil)) }
    next.turn?.tell(.turn)
  }

  // MARK: Committing

  private func carryOut(_ call: Queue.CommitterCall) {
    switch call {
    case .none: break
    case .start: startCommitter()
    case .hurry: pause.end()
    }
  }

  /// Starts the committer in a task of its own: what it does for many must not end with the task of one of them.
  ///
  /// It runs where the base writes, so that a commit does not wait for a thread twice, behind all the callers who have just
  /// been told of the last one.
  private func startCommitter() {
    Task.detached(executorPreference: checks.writeExecutor) { await self.commitGroups() }
  }

  private func commitGroups() async {
    var group = await nextGroup(of: waitingWriteCount)
    while !group.isEmpty {
      let start = stopwatch.elapsed
      let outcome = GroupOutcome(errors: await commit(group))
      let (waiting, returning) = (waitingWriteCount, group.count)
      // With a delay there is always time for all to come back.
      let goesOn = !hasDelay && pace.withLock { $0.goesOn(waitingCount: waiting, returningCount: returning) }
      // Taken before anyone comes back: those who do are for the group after it.
      let following = goesOn ? await nextGroup(of: waiting + returning) : []
      // A task of its own, on the threads of the callers: a child would run here, and hold up the commit.
      let telling = Task.detached { [group] in
        await outcome.tell(group)
        // Those who were told come first: whoever writes again at once is then part of the next group.
        if !goesOn { await Task.yield() }
      }
      if !goesOn { await telling.value }
      group = goesOn ? following : await nextGroup(of: waitingWriteCount)
      guard !hasDelay else { continue }
      let duration = stopwatch.elapsed - start
      pace.withLock { $0.finishGroup(of: returning, among: waiting + returning, after: duration) }
    }
  }

  /// Takes the next group; nothing where the committer is to end.
  ///
  /// - Parameter callerCount: How many write, those who come back from the last group included.
  private func nextGroup(of callerCount: Int) async -> [QueuedCaller] {
    if withQueue({ $0.beginGathering() }) { await pause.wait(delay) }
    let callerLimit = hasDelay ? .max : pace.withLock { $0.groupLimit(of: callerCount) }
    let next = withQueue { $0.takeGroup(callerLimit: callerLimit) }
    serve(next)
    return next.group
  }

  private var hasDelay: Bool { delay > .zero }

  private var waitingWriteCount: Int { queue.withLock { $0.waitingWriteCount } }

  /// Commits the batches of a group, together where that succeeds.
  ///
  /// - Returns: The error of each batch, in order; nothing where all were committed.
  private func commit(_ group: [QueuedCaller]) async -> [(any Error)?] {
    let commit = await GroupCommit(count: group.count) { part in
      do {
        try await base.apply(writes.join(group[part]))
        return nil
      } catch {
        return error
      }
    }
    if commit.failures.isEmpty { return [] }
    var errors: [(any Error)?] = Array(repeating: nil, count: group.count)
    for (part, error) in commit.failures {
      for index in part { errors[index] = error }
    }
    return errors
  }
}

extension BatchingStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "BatchingStore[\(base)]" }
}

extension BatchingStore: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime, after what came before; see ``ExpirableStore/touch(_:lifetime:)``.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    try await inTurn(during: .touch) { try await base.touch(key, lifetime: lifetime) }
  }

  /// Asks the base how long an entry has still to live; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    try await base.remainingTime(forKey: key)
  }

  /// Lets the base remove what has expired, at once: it never removes what was written anew, so it needs no order.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await base.purgeExpired(limit: limit)
  }
}

extension BatchingStore: InvalidatableStore where Base: InvalidatableStore {
  /// Lets the base forget its copy of one key; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Lets the base forget all copies; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}

extension BatchingStore: FlushableStore where Base: FlushableStore {
  /// Waits for what came before, and flushes the base; see ``FlushableStore/flush()``.
  public func flush() async throws {
    try await waitForEarlier(during: .flush)
    try await base.flush()
  }
}
