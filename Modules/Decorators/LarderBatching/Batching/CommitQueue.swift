/// In which order and in which groups a ``BatchingStore`` commits what its callers ask for: plain state, which the store
/// keeps under a lock.
///
/// Whatever is asked for comes into one line. At any moment at most one thing is done:
///
/// - A *turn* is a caller's own: it does the work in its own task, and says when it has ended. An update takes its turn in
///   the line; a write that comes when nothing is done and nobody waits takes one at once.
/// - A *group* is all writes at the head of the line, as far as the bounds allow and as the committer asks for. A
///   committer, which is no caller's task, makes them in one commit, and goes on with the next group as long as writes are
///   at the head.
/// - A *barrier* is passed by its caller when all before it is over.
///
/// A caller may leave the line until it is taken out of it.
struct CommitQueue<Caller: Sendable>: Sendable {
  /// What a caller asks for.
  enum Request: Equatable, Sendable {
    case write(BatchSize)
    case turn
    case barrier
  }

  /// What is to be done when a caller has come.
  enum Arrival: Equatable, Sendable {
    /// The caller's turn begins at once; or, for a barrier, there is nothing to wait for.
    case begins
    /// The caller waits, under a number by which it can leave.
    case waits(UInt64, CommitterCall)
    /// The queue is closed.
    case refused
  }

  /// What is to be done about the committer.
  enum CommitterCall: Equatable, Sendable {
    case none
    /// It is to be started.
    case start
    /// It gathers, and should not wait any longer.
    case hurry
  }

  /// What comes next when something has ended.
  struct Next: Sendable {
    /// Who has passed a barrier.
    var passed: [Caller] = []
    /// Whose turn begins.
    var turn: Caller?
    /// Whose writes are to be committed together, by the committer who asks; where there is none, the committer ends.
    var group: [Caller] = []
    /// Whether a committer is to be started.
    var startsCommitter = false
  }

  private enum Activity {
    case none
    case turn
    case committer(isGathering: Bool)
  }

  private struct Waiting: Sendable {
    let request: Request
    let caller: Caller
  }

  private let limit: BatchSize
  private let gathersFirst: Bool
  private var activity = Activity.none
  private var line = WaitingLine<Waiting>()
  /// The size of the writes in the line.
  private var waitingSize = BatchSize()
  /// How many in the line wait for something else than a group.
  private var otherCount = 0

  /// Whether no more may come.
  private(set) var isClosed = false

  /// Makes an empty queue.
  ///
  /// - Parameters:
  ///   - limit: The most that goes into one group.
  ///   - gathersFirst: Whether a committer waits before it takes a group that could be larger, so that no write begins at
  ///     once.
  init(limit: BatchSize, gathersFirst: Bool) {
    self.limit = limit
    self.gathersFirst = gathersFirst
  }

  /// How many wait in the line.
  var waitingCount: Int { line.count }

  /// How many of them wait for a group.
  var waitingWriteCount: Int { line.count - otherCount }

  /// Whether nothing is done and nobody waits.
  var isIdle: Bool {
    if case .none = activity { line.isEmpty } else { false }
  }

  // MARK: Callers

  /// A caller comes.
  ///
  /// - Parameters:
  ///   - request: What it asks for.
  ///   - caller: How it is told, where it waits.
  mutating func arrive(_ request: Request, _ caller: Caller) -> Arrival {
    guard !isClosed else { return .refused }
    return enter(request, caller)
  }

  /// A caller closes the queue, and waits at a barrier for all that came before.
  ///
  /// Closing again is waiting again.
  mutating func close(_ caller: Caller) -> Arrival {
    isClosed = true
    return enter(.barrier, caller)
  }

  /// Begins what a caller asks for, where nothing is done and nobody waits.
  ///
  /// - Returns: Whether it has begun, or passed where it is a barrier. Where not, the caller has not come yet.
  mutating func begin(_ request: Request) -> Bool {
    guard !isClosed else { return false }
    return beginAtOnce(request)
  }

  private mutating func beginAtOnce(_ request: Request) -> Bool {
    guard case .none = activity else { return false }
    switch request {
    case .barrier: return true
    case .write where gathersFirst: return false
    case .write, .turn:
      activity = .turn
      return true
    }
  }

  private mutating func enter(_ request: Request, _ caller: Caller) -> Arrival {
    if beginAtOnce(request) { return .begins }
    var startsCommitter = false
    if case .none = activity {
      activity = .committer(isGathering: false)
      startsCommitter = true
    }
    count(request, isComing: true)
    let number = line.append(Waiting(request: request, caller: caller))
    if startsCommitter { return .waits(number, .start) }
    if case .committer(isGathering: true) = activity, !couldGather { return .waits(number, .hurry) }
    return .waits(number, .none)
  }

  /// A caller who waits gives up.
  ///
  /// - Parameter number: The number under which it waits.
  /// - Returns: The caller, or `nil` where it is too late, since it was taken out of the line.
  mutating func leave(_ number: UInt64) -> Caller? {
    guard let waiting = line.remove(number) else { return nil }
    count(waiting.request, isComing: false)
    return waiting.caller
  }

  /// A caller's turn ends.
  mutating func endTurn() -> Next {
    var next = Next()
    if serveHead(&next) {
      activity = .committer(isGathering: false)
      next.startsCommitter = true
    }
    return next
  }

  // MARK: The committer

  /// The committer asks whether to wait before it takes a group.
  mutating func beginGathering() -> Bool {
    guard gathersFirst, couldGather, !line.isEmpty else { return false }
    activity = .committer(isGathering: true)
    return true
  }

  /// The committer takes the next group, or ends.
  ///
  /// - Parameter callerLimit: The most callers that the group has; at least 1, and no limit unless given.
  mutating func takeGroup(callerLimit: Int = .max) -> Next {
    var next = Next()
    guard serveHead(&next) else { return next }
    activity = .committer(isGathering: false)
    var size = BatchSize()
    next.group.reserveCapacity(min(line.count, limit.changes, callerLimit))
    while let waiting = line.removeFirst(where: { waiting in
      guard case .write(let more) = waiting.request else { return false }
      return next.group.isEmpty || (next.group.count < callerLimit && (size + more).fits(in: limit))
    }) {
      count(waiting.request, isComing: false)
      if case .write(let more) = waiting.request { size += more }
      next.group.append(waiting.caller)
    }
    return next
  }

  // MARK: Inside

  /// Lets everyone at the head of the line pass who waits at a barrier, and begins the turn that is then at the head.
  ///
  /// - Returns: Whether a write is at the head instead.
  private mutating func serveHead(_ next: inout Next) -> Bool {
    activity = .none
    while let first = line.first {
      switch first.request {
      case .write: return true
      case .barrier: next.passed.append(first.caller)
      case .turn:
        next.turn = first.caller
        activity = .turn
      }
      line.removeFirst()
      count(first.request, isComing: false)
      if next.turn != nil { return false }
    }
    return false
  }

  /// Whether waiting could make the next group larger, and keeps nobody up who waits for something else.
  private var couldGather: Bool {
    otherCount == 0 && !isClosed && !waitingSize.reaches(limit)
  }

  private mutating func count(_ request: Request, isComing: Bool) {
    switch request {
    case .write(let size): if isComing { waitingSize += size } else { waitingSize -= size }
    case .turn, .barrier: otherCount += isComing ? 1 : -1
    }
  }
}
