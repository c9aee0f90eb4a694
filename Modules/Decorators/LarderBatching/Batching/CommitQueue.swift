/// In which order and in which groups a ``BatchingStore`` commits what its callers ask for: plain state, which the store
/// keeps under a lock.
///
/// Whatever is asked for comes into one line. At any moment at most one thing is done:
///
/// - A *turn* is a caller's own: it does the work in its own task, and says when it has ended. An update takes its turn in
///   the line; a write that comes when nothing is done and nobody waits takes one at once.
/// - A *group* is all writes at the head of the line, as far as the bounds allow. A committer, which is no caller's task,
///   makes them in one commit, and goes on with the next group as long as writes are at the head.
/// - A *barrier* is passed by its caller when all before it is over.
///
/// A caller may leave the line until it is taken out of it.
///
/// Two things happen to a caller that waits: it comes, and then hands over how it is told of the outcome. Since others run
/// between the two, the outcome may be there first; it is then kept.
struct CommitQueue<Load: Sendable, Caller: Sendable>: Sendable {
  /// The number of a caller who waits.
  typealias Ticket = UInt64

  /// What a caller asks for.
  enum Request: Sendable {
    case write(Load, BatchSize)
    case turn
    case barrier
  }

  /// What is to be done when a caller has come.
  enum Arrival: Equatable, Sendable {
    /// The caller's turn begins at once; or, for a barrier, there is nothing to wait for.
    case begins
    /// The caller waits.
    case waits(Ticket, CommitterCall)
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

  /// A caller who is to be told.
  struct Telling: Sendable {
    let caller: Caller
    let outcome: TurnOutcome
  }

  /// What is to be done when something has ended.
  struct Consequences: Sendable {
    /// Who is to be told.
    var tellings: [Telling] = []
    /// What is to be committed next, by the committer who asks; nothing where the committer ends.
    var group: [Load] = []
    /// Whether a committer is to be started.
    var startsCommitter = false
  }

  private enum Activity: Sendable {
    case none
    case turn
    case committer(isGathering: Bool)
  }

  private struct Waiting: Sendable {
    let request: Request
    var caller: Caller?
  }

  private struct Member: Sendable {
    let ticket: Ticket
    var caller: Caller?
  }

  private let limit: BatchSize
  private let gathersFirst: Bool
  private var activity = Activity.none
  private var line = WaitingLine<Waiting>()
  /// The size of the writes in the line.
  private var waitingSize = BatchSize()
  /// How many in the line wait for something else than a group.
  private var otherCount = 0
  /// Those whose writes are being committed.
  private var members: [Member] = []
  /// What became of callers who have not handed over how to tell them.
  private var early: [Ticket: TurnOutcome] = [:]

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

  /// Whether nothing is done and nobody waits.
  var isIdle: Bool {
    if case .none = activity { line.isEmpty && early.isEmpty } else { false }
  }

  // MARK: Callers

  /// A caller comes.
  mutating func arrive(_ request: Request) -> Arrival {
    guard !isClosed else { return .refused }
    return enter(request)
  }

  /// A caller closes the queue, and waits at a barrier for all that came before.
  ///
  /// Closing again is waiting again.
  mutating func close() -> Arrival {
    isClosed = true
    return enter(.barrier)
  }

  private mutating func enter(_ request: Request) -> Arrival {
    var startsCommitter = false
    if case .none = activity {
      switch request {
      case .barrier: return .begins
      case .write where gathersFirst:
        activity = .committer(isGathering: false)
        startsCommitter = true
      case .write, .turn:
        activity = .turn
        return .begins
      }
    }
    count(request, by: 1)
    let ticket = line.append(Waiting(request: request, caller: nil))
    if startsCommitter { return .waits(ticket, .start) }
    if case .committer(isGathering: true) = activity, !couldGather { return .waits(ticket, .hurry) }
    return .waits(ticket, .none)
  }

  /// A caller who waits hands over how it is told of the outcome.
  ///
  /// - Returns: The outcome, where it is there already; the caller is then not kept.
  mutating func attach(_ caller: Caller, to ticket: Ticket) -> TurnOutcome? {
    if let outcome = early.removeValue(forKey: ticket) { return outcome }
    if line.modify(ticket, { $0.caller = caller }) { return nil }
    if let index = memberIndex(of: ticket) { members[index].caller = caller }
    return nil
  }

  /// A caller who waits gives up.
  ///
  /// - Returns: Who is to be told of it, and the write that will not be made; `nil` where it is too late, since the caller
  ///   was taken out of the line.
  mutating func leave(_ ticket: Ticket) -> (tellings: [Telling], request: Request)? {
    guard let waiting = line.remove(ticket) else { return nil }
    count(waiting.request, by: -1)
    var tellings: [Telling] = []
    tell(waiting.caller, of: ticket, .finished(CancellationError()), &tellings)
    return (tellings, waiting.request)
  }

  /// A caller's turn ends.
  mutating func endTurn() -> Consequences {
    var consequences = Consequences()
    switch passToHead(&consequences.tellings) {
    case nil: activity = .none
    case .turn: beginTurn(&consequences.tellings)
    case .write, .barrier:
      activity = .committer(isGathering: false)
      consequences.startsCommitter = true
    }
    return consequences
  }

  // MARK: The committer

  /// The committer asks whether to wait before it takes a group.
  mutating func beginGathering() -> Bool {
    guard gathersFirst, couldGather, !line.isEmpty else { return false }
    activity = .committer(isGathering: true)
    return true
  }

  /// The committer takes the next group, or ends.
  mutating func takeGroup() -> Consequences {
    activity = .committer(isGathering: false)
    var consequences = Consequences()
    switch passToHead(&consequences.tellings) {
    case nil: activity = .none
    case .turn: beginTurn(&consequences.tellings)
    case .write, .barrier:
      var size = BatchSize()
      while case .write(let load, let more)? = line.first?.request {
        guard consequences.group.isEmpty || (size + more).fits(in: limit) else { break }
        guard let (ticket, waiting) = line.removeFirst() else { break }
        count(waiting.request, by: -1)
        size += more
        consequences.group.append(load)
        members.append(Member(ticket: ticket, caller: waiting.caller))
      }
    }
    return consequences
  }

  /// The committer has made a group, or failed to.
  ///
  /// - Parameter errors: The errors of the members of the group, in order; empty where all went well.
  /// - Returns: Who is to be told.
  mutating func finishGroup(errors: [(any Error)?]) -> [Telling] {
    var tellings: [Telling] = []
    tellings.reserveCapacity(members.count)
    for (index, member) in members.enumerated() {
      tell(member.caller, of: member.ticket, .finished(index < errors.count ? errors[index] : nil), &tellings)
    }
    members.removeAll(keepingCapacity: true)
    return tellings
  }

  // MARK: Inside

  /// Lets everyone at the head of the line pass who waits at a barrier.
  ///
  /// - Returns: What is then at the head.
  private mutating func passToHead(_ tellings: inout [Telling]) -> Request? {
    while case .barrier? = line.first?.request {
      guard let (ticket, waiting) = line.removeFirst() else { break }
      count(waiting.request, by: -1)
      tell(waiting.caller, of: ticket, .finished(nil), &tellings)
    }
    return line.first?.request
  }

  private mutating func beginTurn(_ tellings: inout [Telling]) {
    guard let (ticket, waiting) = line.removeFirst() else { return }
    count(waiting.request, by: -1)
    activity = .turn
    tell(waiting.caller, of: ticket, .turn, &tellings)
  }

  private mutating func tell(
    _ caller: Caller?, of ticket: Ticket, _ outcome: TurnOutcome, _ tellings: inout [Telling]
  ) {
    if let caller { tellings.append(Telling(caller: caller, outcome: outcome)) } else { early[ticket] = outcome }
  }

  /// Whether waiting could make the next group larger, and keeps nobody up who waits for something else.
  private var couldGather: Bool {
    otherCount == 0 && !isClosed && !waitingSize.reaches(limit)
  }

  private mutating func count(_ request: Request, by step: Int) {
    switch request {
    case .write(_, let size) where step > 0: waitingSize += size
    case .write(_, let size): waitingSize -= size
    case .turn, .barrier: otherCount += step
    }
  }

  private func memberIndex(of ticket: Ticket) -> Int? {
    // Few are late, and those were mostly the last to come.
    members.lastIndex { $0.ticket == ticket }
  }
}
