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
/// and does not notice the decorator. There is no timer: writes that come while a commit runs make the next group.
///
/// **Order.** Everything happens in the order in which it was asked for: an update comes after the writes before it and
/// before those behind it, and runs in its caller's own task. So do `touch` of a store with expiry; `synchronize`, `flush`
/// and `close` first wait for what came before.
///
/// **Failures.** A batch stays atomic within its group. If a group fails because of something in it and nothing was changed,
/// as with a value that cannot be encoded, it is tried again in halves, so that exactly the callers concerned fail. A full
/// disk, or an error of an unknown code, may concern all callers: after three calls in a row have failed alone, parts are
/// tried as a whole and no longer divided. Any other error, such as a failed sync, goes to all callers of the group, and
/// nothing is tried again.
///
/// **Cancellation.** A caller may be cancelled as long as its write waits; it then throws `CancellationError`, and the
/// write is not made. A group that is being committed is not stopped by anyone's cancellation.
///
/// **Bounds.** A group is as large as ``BatchBounds`` allow. If more is waiting than fits into the next group, callers wait
/// for a later one. They are suspended, so nothing piles up beyond what they hold themselves.
public final class BatchingStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  private typealias Queue = CommitQueue<Caller>

  /// A caller in the queue, with the batch that it writes.
  private struct Caller: Sendable {
    let call = PendingCall()
    var batch: ChangeBatch<Value> = []
    /// What the caller's task carries, such as its trace; `nil` if no layer below needs it.
    var context: (any CallerContext)?
  }

  /// The store that does the work.
  public let base: Base

  // The information of the base, which is costly to ask for each time.
  private let checks: StoreInformation
  private let bounds: BatchBounds<Value>
  private let queue: Mutex<Queue>

  /// Puts group commit in front of a store.
  ///
  /// - Parameters:
  ///   - base: The store that does the work.
  ///   - bounds: The largest commit. Defaults to 10,000 changes.
  public init(_ base: Base, bounds: BatchBounds<Value> = BatchBounds()) {
    self.base = base
    self.bounds = bounds
    checks = base.information
    queue = Mutex(Queue(limit: bounds.limit))
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
    try checks.check(changes)
    let request = Queue.Request.write(bounds.size(of: changes))
    guard try await waitForTurn(request, Caller(batch: changes, context: checks.callerContext?()), during: .apply)
    else { return }
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
    _ = try await waitForTurn(.turn, Caller(), during: operation)
    defer { endTurn() }
    return try await body()
  }

  /// Waits until it is the caller's turn, or until its write has been made by the committer.
  ///
  /// - Returns: Whether it is the caller's turn, which it then has to end.
  /// - Throws: `CancellationError` if the task is cancelled while it waits; ``StoreError``: `closed`; the committer's error.
  private func waitForTurn(
    _ request: Queue.Request, _ caller: Caller, during operation: StoreOperation
  ) async throws -> Bool {
    switch queue.withLock({ $0.arrive(request, caller) }) {
    case .begins: return true
    case .refused: throw checks.closedError(for: operation)
    case .waits(let number):
      let outcome = await withTaskCancellationHandler {
        await caller.call.wait()
      } onCancel: {
        queue.withLock { $0.leave(number) }?.call.end(.finished(CancellationError()))
      }
      switch outcome {
      case .turn: return true
      case .finished(nil): return false
      case .finished(let error?): throw error
      }
    }
  }

  /// Waits until everything that came before is over, whether or not the task is cancelled.
  private func waitForEarlier(during operation: StoreOperation) async throws {
    let caller = Caller()
    switch queue.withLock({ operation == .close ? $0.close(caller) : $0.arrive(.barrier, caller) }) {
    case .begins: break
    case .refused: throw checks.closedError(for: operation)
    case .waits: _ = await caller.call.wait()
    }
  }

  private func endTurn() {
    let next = queue.withLock { $0.endTurn() }
    serve(next)
    // A task of its own: what it does for many must not end with the task of one of them.
    if next.startsCommitter { Task.detached { await self.commitGroups() } }
  }

  private func serve(_ next: Queue.Next) {
    for caller in next.passed { caller.call.end(.finished(nil)) }
    next.turn?.call.end(.turn)
  }

  // MARK: Committing

  private func commitGroups() async {
    while true {
      let next = queue.withLock { $0.takeGroup() }
      serve(next)
      guard !next.group.isEmpty else { return }
      let errors = await commit(next.group)
      for (index, caller) in next.group.enumerated() { caller.call.end(.finished(errors[index])) }
      // Callers that wait are served at once. Otherwise the callers just resumed go first: those that write again then share
      // a commit, instead of the first of them making one alone.
      if waitingCount == 0 { await Task.yield() }
    }
  }

  /// Commits the batches of a group, together if that succeeds.
  ///
  /// - Returns: The errors of the batches that failed, by their place in the group.
  private func commit(_ group: [Caller]) async -> [Int: any Error] {
    // A caller that fails with others can try again, so a full disk need not be found full for each of them.
    let commit = await GroupCommit(count: group.count, singleFailureLimit: 3) { part in
      do {
        let batch = part.count == 1 ? group[part.lowerBound].batch : joined(group[part])
        try await run(for: group[part].map(\.context)) { try await base.apply(batch) }
        return nil
      } catch {
        return error
      }
    }
    return commit.failures.reduce(into: [:]) { errors, failure in
      for index in failure.part { errors[index] = failure.error }
    }
  }

  private func joined(_ group: ArraySlice<Caller>) -> ChangeBatch<Value> {
    var changes: [Change<Value>] = []
    changes.reserveCapacity(group.count)
    for caller in group { changes += caller.batch.changes }
    return ChangeBatch(changes)
  }
}

extension DataStore {
  /// Lets many callers share a commit; see ``BatchingStore``.
  ///
  /// - Parameter bounds: The largest commit. Defaults to 10,000 changes.
  public func batched(bounds: BatchBounds<Value> = BatchBounds()) -> BatchingStore<Self> {
    BatchingStore(self, bounds: bounds)
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
