import Larder

@testable import LarderBatching

/// Drives a ``WriteBehindQueue`` step by step as a ``WriteBehindStore`` does, beside a model that predicts the result
/// of each step.
///
/// Callers are numbered in the order of their arrival. The value of a write is the number of its caller.
struct WriteBehindQueueRun: HistoryRun {
  typealias Queue = WriteBehindQueue<Int, Int>

  /// An event that may happen next.
  enum Step: Hashable {
    case write(String)
    case turn
    case drain
    case close
    case leave(Int)
    case endTurn
    case ask
    /// The flush ends. Its first batch fails if `fails` is true.
    case finish(fails: Bool)
    case takeFailures
    case wait
  }

  /// A caller's outcome, in a form that can be compared.
  private enum Outcome: Hashable { case turn, done, cancelled, full }
  private enum Flusher { case none, asks, waits, writes }

  private struct Write {
    let caller: Int
    let keys: String
  }

  private enum Request {
    case write(Write)
    case turn(Int)

    var caller: Int {
      switch self {
      case .write(let write): write.caller
      case .turn(let caller): caller
      }
    }
  }

  static let closing = Step.close

  private static let limit = 4
  private static let maximumAge = 2

  private var queue = Queue(
    limit: BatchSize(changes: limit, bytes: .max), maximumAge: .seconds(maximumAge)
  ) { StoreError(.full, during: .apply, message: "", underlying: $0) }
  /// The queue's numbers of the callers that wait.
  private var numbers: [UInt64?] = []
  private var told: [Int: Outcome] = [:]

  // The model.
  private var now = 0
  private var isClosed = false
  private var line: [Request] = []
  private var drains: [(caller: Int, accepted: Int?)] = []
  private var pending: [Write] = []
  private var pendingSince = 0
  private var inFlight: [Write] = []
  private var failedSize = 0
  private var acceptedCount = 0
  private var writtenCount = 0
  private var runningTurn: Int?
  private var flusher = Flusher.none
  private var due: [Int: Outcome] = [:]
  private var flusherCall = Queue.FlusherCall.none

  /// Every event that may happen now.
  var possibleSteps: [Step] {
    var steps: [Step] = [.write("a"), .write("b"), .write("ab"), .turn, .drain, .wait]
    if !isClosed { steps.append(.close) }
    if failedSize > 0 { steps.append(.takeFailures) }
    for caller in numbers.indices where numbers[caller] != nil && !draining.contains(caller) {
      if told[caller] != .cancelled { steps.append(.leave(caller)) }
    }
    if runningTurn != nil { steps.append(.endTurn) }
    switch flusher {
    case .none: break
    case .asks, .waits: steps.append(.ask)
    case .writes: steps += [.finish(fails: false), .finish(fails: true)]
    }
    return steps
  }

  mutating func carryOut(_ step: Step) throws {
    due = [:]
    flusherCall = .none
    let time = Duration.seconds(now)
    switch step {
    case .write(let keys):
      let write = Write(caller: numbers.count, keys: keys)
      let batch = ChangeBatch(keys.map { Change.set(StoreKey("\($0)"), write.caller) })
      try arrive(.write(write), .write(SizedBatch(batch, bounds: BatchBounds())))
    case .turn: try arrive(.turn(numbers.count), .turn)
    case .drain:
      let caller = numbers.count
      let isOver = writtenCount == acceptedCount
      if !isClosed && !isOver { drains.append((caller, acceptedCount)) }
      settle()
      let (arrival, consequences) = queue.drain(caller, at: time)
      numbers.append(nil)
      switch arrival {
      case .refused: try expect(isClosed, "a drain is refused")
      case .begins: try expect(!isClosed && isOver, "a drain waits for work that does not exist")
      case .waits(let number):
        try expect(!isClosed && !isOver, "a drain has no pending work")
        numbers[caller] = number
        draining.insert(caller)
      case .fails: throw Violation(message: "a drain fails")
      }
      try check(consequences)
    case .close:
      let caller = numbers.count
      isClosed = true
      let isQuiet = isQuiet
      if !isQuiet { drains.append((caller, nil)) }
      settle()
      let ((arrival, isFirst), consequences) = queue.close(caller, at: time)
      numbers.append(nil)
      try expect(isFirst, "closing is not the first")
      if case .waits(let number) = arrival { numbers[caller] = number }
      draining.insert(caller)
      try expect((numbers[caller] == nil) == isQuiet, "closing waits wrongly")
      try check(consequences)
    case .leave(let caller):
      guard let number = numbers[caller] else { return }
      let index = line.firstIndex { $0.caller == caller }
      if let index {
        line.remove(at: index)
        settle()
        told[caller] = .cancelled
      }
      let (left, consequences) = queue.leave(number, at: time)
      try expect((left?.0 == caller) == (index != nil), "\(caller) leaves at the wrong time")
      if left != nil { try check(consequences) }
    case .endTurn:
      runningTurn = nil
      settle()
      try check(queue.endTurn(at: time))
    case .ask: try ask(at: time)
    case .finish(let fails): try finish(fails: fails, at: time)
    case .takeFailures:
      let size = failedSize
      failedSize = 0
      settle()
      let (failures, consequences) = queue.takeFailures(at: time)
      try expect(failures.reduce(0) { $0 + $1.size.changes } == size, "failures are lost")
      try check(consequences)
    case .wait: now += 1
    }
    try checkContents()
  }

  /// Completes all work, and checks that every caller received its outcome.
  mutating func complete() throws {
    while true {
      if runningTurn != nil {
        try carryOut(.endTurn)
      } else if flusher == .asks || flusher == .waits {
        now += WriteBehindQueueRun.maximumAge
        try carryOut(.ask)
      } else if flusher == .writes {
        try carryOut(.finish(fails: false))
      } else {
        break
      }
    }
    for caller in numbers.indices where numbers[caller] != nil {
      try expect(told[caller] != nil, "\(caller) received no outcome")
    }
    try expect(queue.isIdle, "the queue is not idle at the end")
  }

  // MARK: The model

  /// The callers that wait for a drain.
  private var draining: Set<Int> = []

  private var isDrained: Bool { pending.isEmpty && inFlight.isEmpty }
  private var isQuiet: Bool { isDrained && runningTurn == nil && line.isEmpty }

  /// Returns the number of changes in some writes.
  private static func size(_ writes: [Write]) -> Int { writes.reduce(0) { $0 + $1.keys.count } }

  private var isFlushWanted: Bool {
    !pending.isEmpty
      && (isClosed || !line.isEmpty || !drains.isEmpty
        || WriteBehindQueueRun.size(pending) >= WriteBehindQueueRun.limit / 2)
  }

  private mutating func settle() {
    serving: while runningTurn == nil, let first = line.first {
      switch first {
      case .turn(let caller):
        guard isDrained else { break serving }
        runningTurn = caller
        due[caller] = .turn
      case .write(let write):
        let used = WriteBehindQueueRun.size(pending) + WriteBehindQueueRun.size(inFlight) + failedSize
        if used + write.keys.count <= WriteBehindQueueRun.limit {
          if pending.isEmpty { pendingSince = now }
          pending.append(write)
          acceptedCount += 1
          due[write.caller] = .done
        } else if isDrained {
          due[write.caller] = .full
        } else {
          break serving
        }
      }
      line.removeFirst()
    }
    let (writtenCount, isQuiet) = (writtenCount, isQuiet)
    let isOver = { (accepted: Int?) in accepted.map { $0 <= writtenCount } ?? isQuiet }
    for drain in drains where isOver(drain.accepted) { due[drain.caller] = .done }
    drains.removeAll { isOver($0.accepted) }
    if flusher == .none, !pending.isEmpty {
      flusher = .asks
      flusherCall = .start
    } else if flusher == .waits, isFlushWanted {
      flusher = .asks
      flusherCall = .wake
    }
  }

  private mutating func arrive(_ modelled: Request, _ request: Queue.Request) throws {
    let caller = numbers.count
    if !isClosed { line.append(modelled) }
    settle()
    let (arrival, consequences) = queue.arrive(request, caller, at: .seconds(now))
    numbers.append(nil)
    switch arrival {
    case .refused: try expect(isClosed, "\(caller) is refused")
    case .begins:
      let outcome = due.removeValue(forKey: caller)
      try expect(outcome == .turn || outcome == .done, "\(caller) starts immediately")
      told[caller] = outcome
    case .fails: try expect(due.removeValue(forKey: caller) == .full, "\(caller) fails")
    case .waits(let number):
      try expect(due[caller] == nil, "\(caller) waits without a reason")
      numbers[caller] = number
    }
    try check(consequences)
  }

  private mutating func ask(at time: Duration) throws {
    let isDue = now - pendingSince >= WriteBehindQueueRun.maximumAge
    switch queue.nextFlusherStep(at: time) {
    case .end:
      try expect(pending.isEmpty, "the flusher ends with pending changes")
      flusher = .none
    case .wait(let duration):
      try expect(!pending.isEmpty && !isFlushWanted && !isDue, "the flusher waits")
      try expect(
        duration == .seconds(WriteBehindQueueRun.maximumAge - now + pendingSince), "the flusher waits \(duration)")
      flusher = .waits
    case .flush(let batches):
      try expect(!pending.isEmpty && (isFlushWanted || isDue), "a flush before its time")
      try expect(runningTurn == nil && inFlight.isEmpty, "a flush at the wrong time")
      (inFlight, pending) = (pending, [])
      flusher = .writes
      let expected = inFlight.map { write in
        ChangeBatch(write.keys.map { Change.set(StoreKey("\($0)"), write.caller) })
      }
      try expect(batches.map(\.batch) == expected, "\(batches) are flushed")
    }
  }

  private mutating func finish(fails: Bool, at time: Duration) throws {
    var failures: [WriteBehindFailure<Int>] = []
    if fails, let first = inFlight.first {
      failures = [
        WriteBehindFailure(
          changes: [], error: StoreError(.encodingFailed, during: .apply, message: ""),
          size: BatchSize(changes: first.keys.count))
      ]
      failedSize += first.keys.count
    }
    writtenCount += inFlight.count
    inFlight = []
    flusher = .asks
    settle()
    try check(queue.finishFlush(failures: failures, at: time))
  }

  // MARK: Checks

  private static func outcome(_ outcome: TurnOutcome) -> Outcome {
    switch outcome {
    case .turn: .turn
    case .finished(nil): .done
    case .finished(let error?): error is CancellationError ? .cancelled : .full
    }
  }

  /// Compares the queue's consequences with those of the model.
  private mutating func check(_ consequences: Queue.Consequences) throws {
    try expect(consequences.flusher == flusherCall, "the flusher's call is \(consequences.flusher), not \(flusherCall)")
    var found: [Int: Outcome] = [:]
    for resumption in consequences.resumptions {
      try expect(
        found[resumption.caller] == nil && told[resumption.caller] == nil, "\(resumption.caller) is resumed twice")
      found[resumption.caller] = WriteBehindQueueRun.outcome(resumption.outcome)
    }
    try expect(found == due, "\the outcomes are \(found), not \(due)")
    told.merge(found) { $1 }
  }

  private func checkContents() throws {
    for key in "ab" {
      let expected = (pending.last { $0.keys.contains(key) } ?? inFlight.last { $0.keys.contains(key) })?.caller
      var found: Int?
      if case .set(let value)? = queue[StoreKey("\(key)")] { found = value }
      try expect(found == expected, "\(key) is \(String(describing: found))")
    }
    let size = WriteBehindQueueRun.size(pending) + WriteBehindQueueRun.size(inFlight)
    let statistics = queue.statistics(at: .seconds(now))
    try expect(statistics.pendingChanges == size, "\(statistics.pendingChanges) changes are pending")
    try expect(size + failedSize <= WriteBehindQueueRun.limit, "\(size) changes are above the limit")
    if runningTurn != nil { try expect(isDrained, "writes are pending during a turn") }
  }
}
