@testable import LarderBatching

/// Drives a ``CommitQueue`` step by step as a ``BatchingStore`` does, and checks what it must never do.
///
/// Callers are numbers in the order in which they come.
struct CommitQueueRun {
  typealias Queue = CommitQueue<Int>

  /// What may happen next.
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

  /// A rule that was broken.
  struct Violation: Error {
    let message: String
  }

  private enum Kind: Equatable { case write(Int), turn, barrier }
  private enum Fate: Equatable { case waiting, left, served, refused }

  private struct Caller {
    let kind: Kind
    var number: UInt64?
    var fate = Fate.waiting
  }

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

  /// Everything that may happen now.
  var possibleSteps: [Step] {
    var steps: [Step] = [.write(size: 1), .write(size: 2), .turn, .barrier]
    if !isClosed { steps.append(.close) }
    // Those who were served may try as well: it is then too late.
    for caller in callers.indices where callers[caller].number != nil && callers[caller].kind != .barrier {
      if callers[caller].fate != .left { steps.append(.leave(caller)) }
    }
    return steps + possibleWork
  }

  /// What of it is the end of something that goes on.
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
      try expect(next.group.isEmpty, "a turn's end takes a group")
      try serve(next)
      if next.startsCommitter {
        try expect(!hasCommitter, "a second committer is started")
        hasCommitter = true
      }
    case .take:
      let next = queue.takeGroup()
      try expect(!next.startsCommitter, "the committer starts another")
      hasCommitter = !next.group.isEmpty
      try serve(next)
      try expect(hasCommitter || isInTurn || waiting.isEmpty, "the committer ends while somebody waits")
    }
    let isAtWork = isInTurn || hasCommitter
    try expect(isAtWork || waiting.isEmpty, "somebody waits, and nothing is done")
    try expect(queue.isIdle == !isAtWork, "the queue is wrong about being idle")
    try expect(queue.waitingCount == waiting.count, "\(queue.waitingCount) wait")
  }

  /// Lets everything come to its end, and checks that everyone was served.
  mutating func drain() throws {
    while let step = possibleWork.last { try carryOut(step) }
    try expect(waiting.isEmpty, "\(waiting) were never served")
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
      try expect(isFree, "\(caller) begins while something goes on")
      callers[caller].fate = .served
      isInTurn = kind != .barrier
    case .waits(let number):
      callers[caller].number = number
      try expect(!isFree, "\(caller) waits for nothing")
    }
    if isClosed, kind != .barrier { try expect(callers[caller].fate == .refused, "\(caller) comes after closing") }
  }

  /// Checks that those who are served come first, and that nothing begins beside anything else.
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
