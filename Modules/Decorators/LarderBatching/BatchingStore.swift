public import Larder

/// A decorator that lets many callers share a commit.
///
/// Writes that arrive during a commit are collected and share the next one (group commit).
///
/// ```swift
/// let store = try await LMDBStore<Order>(path: "orders").batched()
/// try await store.setValue(order, forKey: "order:17")   // as durable as before, but a thousand callers share one sync
/// ```
///
/// A write still returns after it has been committed, with its own error if it failed. Reads go to the base, so no
/// uncommitted write is visible. A single caller is served directly, in its own task, without delay. There is no timer.
///
/// **Order.** Operations take effect in the order of their calls. An update runs after earlier writes and before later
/// ones, in its caller's own task. So does `touch` of a store with expiry. `synchronize`, `flush` and `close` first
/// wait for earlier operations.
///
/// **Failures.** A batch stays atomic within its group. If a group fails because of one change, as with a value that
/// cannot be encoded, and nothing was changed, it is split in two and tried again, so only the callers concerned fail.
/// A full disk, or an error with an unknown code, may concern all callers. After three calls in a row have failed
/// alone, parts are tried as a whole and no longer split. Any other error, such as a failed sync, goes to all callers
/// of the group, and nothing is tried again.
///
/// **Cancellation.** You can cancel a caller while its write waits. It then throws `CancellationError`, and the write
/// is not performed. A group that is being committed is never cancelled.
///
/// **Bounds.** A group is as large as ``BatchBounds`` allows. Writes that do not fit into the next group wait for a
/// later one. Their callers are suspended, so the queue holds no more than what the callers hold themselves.
public final class BatchingStore<Base: DataStore>: DataStore {
  /// The type of the values in the base.
  public typealias Value = Base.Value

  private typealias Queue = CommitQueue<Caller>

  /// A caller in the queue, with the batch that it writes.
  private struct Caller: Sendable {
    let call = PendingCall()
    var batch: ChangeBatch<Value> = []
    /// The context of the caller's task, such as its trace, or `nil` if it doesn't have one.
    var context: (any CallerContext)?
  }

  /// The store that is decorated.
  public let base: Base

  // The information of the base, which is costly to ask for each time.
  private let checks: StoreInformation
  private let bounds: BatchBounds<Value>
  private let queue: Locked<Queue>

  /// Creates a store that commits writes to another one in groups.
  ///
  /// - Parameters:
  ///   - base: The store to decorate.
  ///   - bounds: The maximum size of a commit. Defaults to 10,000 changes.
  public init(_ base: Base, bounds: BatchBounds<Value> = BatchBounds()) {
    self.base = base
    self.bounds = bounds
    checks = base.information
    queue = Locked(Queue(limit: bounds.limit(for: base.information)))
  }

  /// The information of the base.
  public var information: StoreInformation { base.information }

  /// The number of callers that wait for a later commit or a later turn.
  public var waitingCount: Int { queue.withLock { $0.waitingCount } }

  /// A Boolean value that indicates whether no work is in progress and no caller waits.
  var isIdle: Bool { queue.withLock { $0.isIdle } }

  // MARK: Writing

  /// Applies several changes atomically, in one commit with the writes of other callers; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try checks.check(changes)
    let request = Queue.Request.write(bounds.size(of: changes))
    guard try await waitForTurn(request, Caller(batch: changes, context: CallerContexts.current), during: .apply)
    else { return }
    defer { endTurn() }
    try await base.apply(changes)
  }

  /// Reads and writes several values as one atomic step, after earlier operations; see `DataStore`.
  ///
  /// It is a commit of its own.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try checks.check(updateOf: keys)
    return try await inTurn(during: .update) { try await base.update(deciding: keys, body) }
  }

  /// Waits for earlier operations and ensures that their writes are durable; see `DataStore`.
  public func synchronize() async throws {
    try await waitForEarlier(during: .synchronize)
    try await base.synchronize()
  }

  /// Waits for earlier operations and closes the base; see `DataStore`.
  public func close() async throws {
    // The queue is closed to others, but not to further calls of `close`.
    try await waitForEarlier(during: .close)
    try await base.close()
  }

  // MARK: Waiting

  /// Runs a closure after all earlier operations and before any later one.
  private func inTurn<Result>(
    during operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    _ = try await waitForTurn(.turn, Caller(), during: operation)
    defer { endTurn() }
    return try await body()
  }

  /// Waits until it is the caller's turn, or until the committer has written its batch.
  ///
  /// - Returns: A Boolean value that indicates whether it is the caller's turn, which the caller must then end.
  /// - Throws: `CancellationError` if the task is cancelled while it waits; ``StoreError`` with `closed`; the error of
  ///   the commit.
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

  /// Waits until all earlier operations are over, even if the task is cancelled.
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
    // The committer has its own task. Its work for many callers must not end with the task of one of them.
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
      // If callers wait, they are served immediately. Otherwise the callers just resumed run first, so that their next
      // writes share a commit instead of the first of them being committed alone.
      if waitingCount == 0 { await Task.yield() }
    }
  }

  /// Commits the batches of a group, together if that succeeds.
  ///
  /// - Returns: The errors of the batches that failed, by their index in the group.
  private func commit(_ group: [Caller]) async -> [Int: any Error] {
    // A caller that fails together with others can try again. A full disk need not be rediscovered for each of them.
    let commit = await GroupCommit(count: group.count, singleFailureLimit: { _ in 3 }) { part in
      do {
        let batch = part.count == 1 ? group[part.lowerBound].batch : joined(group[part])
        try await CallerContexts.run(for: group[part].map(\.context)) { try await base.apply(batch) }
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
    var changes: [BatchChange<Value>] = []
    changes.reserveCapacity(group.count)
    for caller in group { changes += caller.batch.changes }
    return ChangeBatch(changes)
  }
}

extension DataStore {
  /// Returns a decorator that commits writes to this store in groups; see ``BatchingStore``.
  ///
  /// ```swift
  /// let orders = try await LMDBStore<Order>(path: folder + "/orders").batched()
  /// try await orders.setValue(order, forKey: "order:17")
  /// ```
  ///
  /// - Parameter bounds: The maximum size of a commit. Defaults to 10,000 changes.
  public func batched(bounds: BatchBounds<Value> = BatchBounds()) -> BatchingStore<Self> {
    BatchingStore(self, bounds: bounds)
  }
}

/// `setValue` and `touch` take their turn after earlier operations, and `flush` waits for them.
///
/// All other operations of a capability go to the base immediately. A purge, for example, need not wait, because it
/// never removes an entry that was written again.
extension BatchingStore: ReadForwardingStore {
  /// Performs an operation of a capability on the base, in its turn if it writes an entry.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    switch operation {
    case .apply, .touch: return try await inTurn(during: operation, body)
    case .flush: try await waitForEarlier(during: operation)
    default: break
    }
    return try await body()
  }
}

extension BatchingStore: ExpirableStore where Base: ExpirableStore {}
extension BatchingStore: InvalidatableStore where Base: InvalidatableStore {}
extension BatchingStore: FlushableStore where Base: FlushableStore {}
extension BatchingStore: ObservableStore where Base: ObservableStore {}
extension BatchingStore: MaintainableStore where Base: MaintainableStore {}
