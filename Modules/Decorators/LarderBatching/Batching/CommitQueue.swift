/// The order and the groups in which a ``BatchingStore`` serves its callers.
///
/// This is plain state, which the store keeps under a lock.
///
/// All callers wait in one line. At any moment at most one thing is done:
///
/// - A *turn* belongs to a caller, who works in its own task and then ends it. An update takes its turn in the line. A write
///   takes one if it finds the queue idle.
/// - A *group* is all writes at the head of the line, within the bounds. A committer, which is no caller's task, makes them
///   in one commit, and takes the next group as long as writes are at the head.
/// - A *barrier* is passed when everything before it is over.
///
/// A caller may leave the line until it is taken out of it.
struct CommitQueue<Caller: Sendable>: Sendable {
  /// A caller's request.
  enum Request: Equatable, Sendable {
    case write(BatchSize)
    case turn
    case barrier
  }

  /// The answer to a caller who arrives.
  enum Arrival: Equatable, Sendable {
    /// The caller's turn begins at once. A barrier is passed.
    case begins
    /// The caller waits, under a number by which it can leave.
    case waits(UInt64)
    /// The queue is closed.
    case refused
  }

  /// The next things to do after something has ended.
  struct Next: Sendable {
    /// The callers who have passed a barrier.
    var passed: [Caller] = []
    /// The caller whose turn begins.
    var turn: Caller?
    /// Whether a committer must be started.
    var startsCommitter = false
    /// The writes that the committer must commit together.
    ///
    /// If there are none, it ends.
    var group: [Caller] = []
  }

  private struct Waiting: Sendable {
    let request: Request
    let caller: Caller
  }

  private let limit: BatchSize
  private var line = WaitingLine<Waiting>()
  // While it is false, no caller waits.
  private var isBusy = false

  /// Whether no more callers are admitted.
  private(set) var isClosed = false

  /// Creates an empty queue.
  ///
  /// - Parameter limit: The largest group. A larger write goes alone.
  init(limit: BatchSize) {
    self.limit = limit
  }

  /// The number of callers in the line.
  var waitingCount: Int { line.count }

  /// Whether nothing is done and nobody waits.
  var isIdle: Bool { !isBusy }

  // MARK: Callers

  /// Admits a caller.
  mutating func arrive(_ request: Request, _ caller: Caller) -> Arrival {
    isClosed ? .refused : enter(request, caller)
  }

  /// Closes the queue to others.
  ///
  /// The caller waits at a barrier, also if the queue was closed before.
  mutating func close(_ caller: Caller) -> Arrival {
    isClosed = true
    return enter(.barrier, caller)
  }

  private mutating func enter(_ request: Request, _ caller: Caller) -> Arrival {
    if isBusy { return .waits(line.append(Waiting(request: request, caller: caller))) }
    isBusy = request != .barrier
    return .begins
  }

  /// Removes a caller that gives up waiting.
  ///
  /// - Parameter number: The number under which it waits.
  /// - Returns: The caller, or `nil` if it was taken out of the line before.
  mutating func leave(_ number: UInt64) -> Caller? {
    line.remove(number)?.caller
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
    next.group.reserveCapacity(min(line.count, limit.changes))
    while let first = line.first, case .write(let more) = first.request,
      next.group.isEmpty || (size + more).fits(in: limit)
    {
      size += more
      next.group.append(first.caller)
      line.removeFirst()
    }
    return next
  }

  /// Serves the barriers at the head of the line, and a turn that follows them.
  ///
  /// - Returns: Whether a write is at the head then.
  private mutating func serveHead(_ next: inout Next) -> Bool {
    while next.turn == nil, let first = line.first {
      switch first.request {
      case .write: return true
      case .barrier: next.passed.append(first.caller)
      case .turn: next.turn = first.caller
      }
      line.removeFirst()
    }
    isBusy = next.turn != nil
    return false
  }
}
