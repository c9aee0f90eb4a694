import Testing

@testable import LarderBatching

/// Drives a ``CommitQueue`` step by step as a ``BatchingStore`` does, and checks what it must never do.
///
/// Callers are numbers in the order in which they come; a write's load is its caller.
struct CommitQueueRun {
  typealias Queue = CommitQueue<Int, Int>

  /// What may happen next.
  enum Step: Hashable, CustomStringConvertible {
    case write(size: Int)
    case turn
    case barrier
    case close
    /// The caller, who has come, hands over how it is told.
    case attach(Int)
    case leave(Int)
    case endTurn
    case gather
    case take
    case finish

    var description: String {
      switch self {
      case .write(let size): "write of \(size)"
      case .turn: "turn"
      case .barrier: "barrier"
      case .close: "close"
      case .attach(let caller): "attach \(caller)"
      case .leave(let caller): "leave \(caller)"
      case .endTurn: "endTurn"
      case .gather: "gather"
      case .take: "take"
      case .finish: "finish"
      }
    }
  }

  /// A rule that was broken.
  struct Violation: Error {
    let message: String
  }

  private enum Kind: Equatable { case write(Int), turn, barrier }
  private enum Fate: Equatable { case waiting, left, served, over, refused }
  private enum Committer { case none, asked, committing([Int]) }

  private struct Caller {
    let kind: Kind
    var ticket: UInt64?
    var isAttached = false
    var isTold = false
    var fate = Fate.waiting
  }

  private let limit: Int
  private let gathersFirst: Bool
  private var queue: Queue
  private var callers: [Caller] = []
  private var runningTurn: Int?
  private var committer = Committer.none
  private var isClosed = false

  init(limit: Int, gathersFirst: Bool) {
    self.limit = limit
    self.gathersFirst = gathersFirst
    queue = Queue(limit: BatchSize(changes: limit, bytes: .max), gathersFirst: gathersFirst)
  }

  /// Everything that may happen now.
  var possibleSteps: [Step] {
    var steps: [Step] = [.write(size: 1), .write(size: 2), .turn, .barrier]
    if !isClosed { steps.append(.close) }
    for (caller, state) in callers.enumerated() where state.ticket != nil && !state.isTold {
      if !state.isAttached { steps.append(.attach(caller)) }
      if state.kind != .barrier { steps.append(.leave(caller)) }
    }
    return steps + possibleWork
  }

  /// What of it is the end of something that goes on.
  var possibleWork: [Step] {
    // A caller who does not know yet that it is its turn does not end it.
    if let runningTurn { return callers[runningTurn].isTold ? [.endTurn] : [] }
    switch committer {
    case .none: return []
    case .asked: return gathersFirst ? [.gather, .take] : [.take]
    case .committing: return [.finish]
    }
  }

  mutating func carryOut(_ step: Step) throws {
    switch step {
    case .write(let size): try arrive(.write(callers.count, BatchSize(changes: size)), .write(size))
    case .turn: try arrive(.turn, .turn)
    case .barrier: try arrive(.barrier, .barrier)
    case .close:
      isClosed = true
      callers.append(Caller(kind: .barrier))
      try take(queue.close())
    case .attach(let caller):
      callers[caller].isAttached = true
      guard let ticket = callers[caller].ticket else { return }
      if let outcome = queue.attach(caller, to: ticket) { try tell(caller, outcome) }
    case .leave(let caller):
      guard let ticket = callers[caller].ticket else { return }
      guard let (tellings, _) = queue.leave(ticket) else {
        try expect(callers[caller].fate != .waiting, "\(caller) waits and cannot leave")
        return
      }
      try expect(callers[caller].fate == .waiting, "\(caller) leaves who does not wait")
      callers[caller].fate = .left
      try tell(tellings)
    case .endTurn:
      if let runningTurn { callers[runningTurn].fate = .over }
      runningTurn = nil
      let consequences = queue.endTurn()
      try serveHead()
      try tell(consequences.tellings)
      try expect(consequences.group.isEmpty, "a turn's end takes a group")
      if consequences.startsCommitter { try startCommitter() }
    case .gather:
      let size = waiting.reduce(0) { if case .write(let size) = callers[$1].kind { $0 + size } else { $0 } }
      let isPure = waiting.allSatisfy { if case .write = callers[$0].kind { true } else { false } }
      let couldGather = !isClosed && isPure && (1..<limit).contains(size)
      try expect(queue.beginGathering() == (gathersFirst && couldGather), "gathering at the wrong time")
    case .take: try takeGroup()
    case .finish:
      guard case .committing(let group) = committer else { return }
      committer = .asked
      for caller in group { callers[caller].fate = .over }
      // Every second one fails.
      let errors = group.map { $0.isMultiple(of: 2) ? nil : Violation(message: "\($0)") }
      try tell(queue.finishGroup(errors: errors))
    }
    let isAtWork = runningTurn != nil || !possibleWork.isEmpty
    try expect(isAtWork || waiting.isEmpty, "somebody waits, and nothing is done")
    if !isAtWork, callers.allSatisfy(\.isTold) { try expect(queue.isIdle, "the queue is not idle") }
  }

  /// Lets everything come to its end, and checks that everyone was told.
  mutating func drain() throws {
    for caller in callers.indices where callers[caller].ticket != nil && !callers[caller].isAttached {
      try carryOut(.attach(caller))
    }
    while let step = possibleWork.last { try carryOut(step) }
    for (caller, state) in callers.enumerated() { try expect(state.isTold, "\(caller) was never told") }
    try expect(queue.isIdle, "the queue is not idle at the end")
  }

  // MARK: Checks

  private var waiting: [Int] {
    callers.indices.filter { callers[$0].fate == .waiting }
  }

  private func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(message: message()) }
  }

  private mutating func arrive(_ request: Queue.Request, _ kind: Kind) throws {
    callers.append(Caller(kind: kind))
    try take(queue.arrive(request))
  }

  private mutating func take(_ arrival: Queue.Arrival) throws {
    let caller = callers.count - 1
    let isFree = waiting == [caller] && runningTurn == nil && possibleWork.isEmpty
    switch arrival {
    case .refused:
      try expect(isClosed, "\(caller) is refused")
      callers[caller].fate = .refused
      callers[caller].isTold = true
    case .begins:
      try expect(isFree, "\(caller) begins while something goes on")
      if case .write = callers[caller].kind { try expect(!gathersFirst, "\(caller) does not gather") }
      callers[caller].isTold = true
      if callers[caller].kind == .barrier { callers[caller].fate = .over } else { try begin(caller) }
    case .waits(let ticket, let call):
      callers[caller].ticket = ticket
      if call == .start { try startCommitter() }
      try expect(!isFree || gathersFirst, "\(caller) waits for nothing")
    }
    if isClosed, callers[caller].kind != .barrier {
      try expect(callers[caller].fate == .refused, "\(caller) comes after closing")
    }
  }

  private mutating func startCommitter() throws {
    guard case .none = committer else { throw Violation(message: "a second committer is started") }
    committer = .asked
  }

  private mutating func begin(_ caller: Int) throws {
    try expect(runningTurn == nil, "two turns at once")
    if case .committing = committer { throw Violation(message: "a turn begins while a group is committed") }
    try expectFirst(caller)
    callers[caller].fate = .served
    runningTurn = caller
  }

  private mutating func takeGroup() throws {
    let consequences = queue.takeGroup()
    committer = .none
    try serveHead()
    try tell(consequences.tellings)
    try expect(!consequences.startsCommitter, "the committer starts another")
    guard !consequences.group.isEmpty else {
      try expect(runningTurn != nil || waiting.isEmpty, "the committer ends while somebody waits")
      return
    }
    try expect(runningTurn == nil, "a group is taken during a turn")
    var size = 0
    for caller in consequences.group {
      guard case .write(let more) = callers[caller].kind else { throw Violation(message: "\(caller) is no write") }
      try expectFirst(caller)
      callers[caller].fate = .served
      size += more
    }
    try expect(size <= limit || consequences.group.count == 1, "a group of \(size)")
    if let next = waiting.first, case .write(let more) = callers[next].kind {
      try expect(size + more > limit, "a group leaves out a write that fits")
    }
    committer = .committing(consequences.group)
  }

  private func expectFirst(_ caller: Int) throws {
    try expect(waiting.first == caller, "\(caller) is served before \(waiting.first ?? -1)")
  }

  private mutating func tell(_ tellings: [Queue.Telling]) throws {
    for telling in tellings {
      try expect(callers[telling.caller].isAttached, "\(telling.caller) is told before it has said how")
      try tell(telling.caller, telling.outcome)
    }
  }

  /// Something has ended: barriers at the head are passed, and a turn behind them begins, whether or not their callers have
  /// said how they are told.
  private mutating func serveHead() throws {
    while let first = waiting.first, callers[first].kind == .barrier { callers[first].fate = .over }
    if let first = waiting.first, callers[first].kind == .turn { try begin(first) }
  }

  private mutating func tell(_ caller: Int, _ outcome: TurnOutcome) throws {
    try expect(!callers[caller].isTold, "\(caller) is told twice")
    callers[caller].isTold = true
    switch outcome {
    case .turn:
      try expect(runningTurn == caller, "\(caller) gets a turn")
    case .finished(let error):
      switch callers[caller].kind {
      case .barrier:
        try expect(callers[caller].fate == .over, "\(caller) passes those before it")
        try expect(error == nil, "a barrier has an error")
      case .turn: try expect(callers[caller].fate == .left && error is CancellationError, "the turn of \(caller) ends")
      case .write:
        switch callers[caller].fate {
        case .left:
          try expect(error is CancellationError, "\(caller) has left and is told \(String(describing: error))")
        case .over: try expect((error == nil) == caller.isMultiple(of: 2), "\(caller) gets another's error")
        default: throw Violation(message: "\(caller) is told too early")
        }
      }
    }
  }
}
