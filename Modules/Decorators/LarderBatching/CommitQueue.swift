/// The order and the groups in which a ``BatchingStore`` serves its callers.
///
/// This is plain state that the store keeps under a lock.
///
/// All callers wait in one wait queue. At any moment, at most one of these is in progress:
///
/// - A *turn* gives a caller exclusive access. The caller works in its own task and then ends the turn. An update waits
///   for its turn. A write takes a turn only if it finds the queue idle.
/// - A *group* is all writes at the head of the wait queue, within the bounds. A committer, which is not the task of
///   any caller, writes them in one commit. It takes the next group as long as writes are at the head.
///
/// A *barrier* is passed when everything before it is over. A caller may leave the wait queue until it is served.
struct CommitQueue<Caller: Sendable>: Sendable {
  /// A caller's request.
  enum Request: Equatable, Sendable {
    case write(BatchSize)
    case turn
    case barrier
  }

  /// The answer to an arriving caller.
  enum Arrival: Equatable, Sendable {
    /// The caller's turn begins immediately, or its barrier is passed.
    case begins
    /// The caller waits, under a number by which it can leave.
    case waits(UInt64)
    /// The queue is closed.
    case refused
  }

  /// The actions to take after a step has ended.
  struct Next: Sendable {
    /// The callers that have passed a barrier.
    var passed: [Caller] = []
    /// The caller whose turn begins.
    var turn: Caller?
    /// A Boolean value that indicates whether a committer must be started.
    var startsCommitter = false
    /// The writes that the committer must commit together.
    ///
    /// If there aren't any, the committer ends.
    var group: [Caller] = []
  }

  private struct Waiting: Sendable {
    let request: Request
    let caller: Caller
  }

  private let limit: BatchSize
  private var waiters = WaitQueue<Waiting>()
  // If it is false, no caller waits.
  private var isBusy = false

  /// A Boolean value that indicates whether new callers are refused.
  private(set) var isClosed = false

  /// Creates an empty queue.
  ///
  /// - Parameter limit: The maximum size of a group. A larger write is a group of its own.
  init(limit: BatchSize) {
    self.limit = limit
  }

  /// The number of waiting callers.
  var waitingCount: Int { waiters.count }

  /// A Boolean value that indicates whether no work is in progress and no caller waits.
  var isIdle: Bool { !isBusy }

  // MARK: Callers

  /// Admits a caller.
  mutating func arrive(_ request: Request, _ caller: Caller) -> Arrival {
    isClosed ? .refused : enter(request, caller)
  }

  /// Closes the queue to other callers.
  ///
  /// The caller waits at a barrier, even if the queue was closed before.
  mutating func close(_ caller: Caller) -> Arrival {
    isClosed = true
    return enter(.barrier, caller)
  }

  private mutating func enter(_ request: Request, _ caller: Caller) -> Arrival {
    if isBusy { return .waits(waiters.append(Waiting(request: request, caller: caller))) }
    isBusy = request != .barrier
    return .begins
  }

  /// Removes a caller that gives up waiting.
  ///
  /// - Parameter number: The number under which it waits.
  /// - Returns: The caller, or `nil` if it has already been served.
  mutating func leave(_ number: UInt64) -> Caller? {
    waiters.remove(number)?.caller
  }

  /// Ends a caller's turn.
  mutating func endTurn() -> Next {
    var next = Next()
    next.startsCommitter = serveHead(&next)
    return next
  }

  /// Takes the next group for the committer.
  mutating func takeGroup() -> Next {
    var next = Next()
    guard serveHead(&next) else { return next }
    var size = BatchSize()
    next.group.reserveCapacity(min(waiters.count, limit.changes))
    while let first = waiters.first, case .write(let more) = first.request,
      next.group.isEmpty || (size + more).fits(in: limit)
    {
      size += more
      next.group.append(first.caller)
      waiters.removeFirst()
    }
    return next
  }

  /// Serves the barriers at the head of the wait queue, and a turn that follows them.
  ///
  /// - Returns: A Boolean value that indicates whether a write is then at the head.
  private mutating func serveHead(_ next: inout Next) -> Bool {
    while next.turn == nil, let first = waiters.first {
      switch first.request {
      case .write: return true
      case .barrier: next.passed.append(first.caller)
      case .turn: next.turn = first.caller
      }
      waiters.removeFirst()
    }
    isBusy = next.turn != nil
    return false
  }
}
