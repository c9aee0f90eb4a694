import Testing

@testable import LarderBatching

@Suite struct CommitQueueTests {
  @Test func `every short history keeps the invariants`() throws {
    #expect(try CommitQueueRun(limit: 2).runEveryHistory(steps: 6) > 10_000)
  }

  @Test func `long random histories keep the invariants`() throws {
    try CommitQueueRun.runRandomHistories(300) { CommitQueueRun(limit: 3) }
  }

  @Test func `many callers that leave leave no state`() {
    var queue = CommitQueue<Int>(limit: BatchSize(changes: 10, bytes: .max))
    #expect(queue.arrive(.turn, -1) == .begins)
    for caller in 0..<10_000 {
      guard case .waits(let number) = queue.arrive(.write(BatchSize(changes: 1)), caller) else {
        Issue.record("\(caller) is not waiting")
        return
      }
      #expect(queue.leave(number) == caller)
    }
    #expect(queue.endTurn().startsCommitter == false)
    #expect(queue.isIdle)
  }
}

/// Drives a ``CommitQueue`` step by step as a ``BatchingStore`` does, and checks its invariants.
///
/// Callers are numbered in the order of their arrival.
struct CommitQueueRun: HistoryRun {
  typealias Queue = CommitQueue<Int>

  /// An event that may happen next.
  enum Step: Hashable {
    case write(size: Int)
    case turn
    case barrier
    case close
    case leave(Int)
    case endTurn
    /// The committer takes the next group.
    case take
  }

  private enum Kind: Equatable { case write(Int), turn, barrier }
  private enum Fate: Equatable { case waiting, left, served, refused }

  private struct Caller {
    let kind: Kind
    var number: UInt64?
    var fate = Fate.waiting
  }

  static let closing = Step.close

  private let limit: Int
  private var queue: Queue
  private var callers: [Caller] = []
  private var isInTurn = false
  private var hasCommitter = false
  private var isClosed = false

  init(limit: Int) {
    self.limit = limit
    queue = Queue(limit: BatchSize(changes: limit, bytes: .max))
  }

  /// Every event that may happen now.
  var possibleSteps: [Step] {
    var steps: [Step] = [.write(size: 1), .write(size: 2), .turn, .barrier]
    if !isClosed { steps.append(.close) }
    // Callers that were served may also try to leave; it is then too late.
    for caller in callers.indices where callers[caller].number != nil && callers[caller].kind != .barrier {
      if callers[caller].fate != .left { steps.append(.leave(caller)) }
    }
    return steps + possibleWork
  }

  /// The possible steps that complete work in progress.
  private var possibleWork: [Step] {
    if isInTurn { return [.endTurn] }
    return hasCommitter ? [.take] : []
  }

  mutating func carryOut(_ step: Step) throws {
    switch step {
    case .write(let size): try arrive(.write(BatchSize(changes: size)), .write(size))
    case .turn: try arrive(.turn, .turn)
    case .barrier: try arrive(.barrier, .barrier)
    case .close:
      isClosed = true
      callers.append(Caller(kind: .barrier))
      try take(queue.close(callers.count - 1))
    case .leave(let caller):
      guard let number = callers[caller].number else { return }
      let left = queue.leave(number)
      try expect((left == caller) == (callers[caller].fate == .waiting), "\(caller) leaves at the wrong time")
      if left != nil { callers[caller].fate = .left }
    case .endTurn:
      isInTurn = false
      let next = queue.endTurn()
      try expect(next.group.isEmpty, "the end of a turn takes a group")
      try serve(next)
      if next.startsCommitter {
        try expect(!hasCommitter, "a second committer is started")
        hasCommitter = true
      }
    case .take:
      let next = queue.takeGroup()
      try expect(!next.startsCommitter, "the committer starts a second one")
      hasCommitter = !next.group.isEmpty
      try serve(next)
      try expect(hasCommitter || isInTurn || waiting.isEmpty, "the committer ends while callers wait")
    }
    let isAtWork = isInTurn || hasCommitter
    try expect(isAtWork || waiting.isEmpty, "callers wait, but no work is in progress")
    try expect(queue.isIdle == !isAtWork, "isIdle is wrong")
    try expect(queue.waitingCount == waiting.count, "\(queue.waitingCount) wait")
  }

  /// Completes all work, and checks that every caller was served.
  mutating func complete() throws {
    while let step = possibleWork.last { try carryOut(step) }
    try expect(waiting.isEmpty, "\(waiting) were never served")
  }

  // MARK: Checks

  private var waiting: [Int] {
    callers.indices.filter { callers[$0].fate == .waiting }
  }

  private mutating func arrive(_ request: Queue.Request, _ kind: Kind) throws {
    callers.append(Caller(kind: kind))
    try take(queue.arrive(request, callers.count - 1))
  }

  private mutating func take(_ arrival: Queue.Arrival) throws {
    let caller = callers.count - 1
    let isFree = waiting == [caller] && !isInTurn && !hasCommitter
    let kind = callers[caller].kind
    switch arrival {
    case .refused:
      try expect(isClosed, "\(caller) is refused")
      callers[caller].fate = .refused
    case .begins:
      try expect(isFree, "\(caller) starts during other work")
      callers[caller].fate = .served
      isInTurn = kind != .barrier
    case .waits(let number):
      callers[caller].number = number
      try expect(!isFree, "\(caller) waits without a reason")
    }
    if isClosed, kind != .barrier {
      try expect(callers[caller].fate == .refused, "\(caller) is accepted after closing")
    }
  }

  /// Checks that callers are served in order and that no two pieces of work overlap.
  private mutating func serve(_ next: Queue.Next) throws {
    for caller in next.passed {
      try expect(callers[caller].kind == .barrier, "\(caller) passes")
      try serve(caller)
    }
    if let caller = next.turn {
      try expect(callers[caller].kind == .turn && !isInTurn && next.group.isEmpty, "\(caller) gets a turn")
      try serve(caller)
      isInTurn = true
    }
    var size = 0
    for caller in next.group {
      guard case .write(let more) = callers[caller].kind else { throw Violation(message: "\(caller) is no write") }
      try serve(caller)
      size += more
    }
    try expect(size <= limit || next.group.count == 1, "a group of \(size)")
    if !next.group.isEmpty, let first = waiting.first, case .write(let more) = callers[first].kind {
      try expect(size + more > limit, "a group leaves out a write that fits")
    }
    if let first = waiting.first, callers[first].kind != .turn, !isInTurn, next.group.isEmpty {
      try expect(next.startsCommitter, "\(first) is not served")
    }
  }

  private mutating func serve(_ caller: Int) throws {
    try expect(waiting.first == caller, "\(caller) is served before \(waiting.first ?? -1)")
    callers[caller].fate = .served
  }
}
