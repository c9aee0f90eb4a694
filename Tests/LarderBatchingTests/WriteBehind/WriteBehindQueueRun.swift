import Larder

@testable import LarderBatching

/// Drives a ``WriteBehindQueue`` step by step as a ``WriteBehindStore`` does, beside a model that predicts the result
/// of each step.
///
/// Callers are numbered in the order of their arrival. The value of a write is the number of its caller.
struct WriteBehindQueueRun: HistoryRun {
  typealias Queue = WriteBehindQueue<Int, Int>

  /// A caller's outcome, in a form that can be compared.
  private enum Outcome: Hashable { case turn, done, cancelled, full, closed, down }
  private enum Flusher { case none, asks, waits, writes }

  private struct Write {
    let caller: Int
    var keys: String
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

  private var queue = Queue(
    limit: BatchSize(changes: limit, bytes: .max), maximumAge: .seconds(maximumAge),
    retries: WriteBehindRetryPolicy(
      firstDelay: .seconds(1), maximumDelay: .seconds(1), readRetries: WriteBehindQueueRun.readRetries),
    errors: WriteBehindErrors(store: "", closed: StoreError(.closed, during: .apply, message: "")))
  /// The queue's numbers of the callers that wait.
  private var numbers: [UInt64?] = []
  private var told: [Int: Outcome] = [:]

  // The model.
  private var now = 0
  private var isClosed = false
  private var line: [Request] = []
  private var drains: [(caller: Int, accepted: Int?, isPatient: Bool)] = []
  private var pending: [Write] = []
  private var pendingSince = 0
  private var inFlight: [Write] = []
  private var retained: [Write] = []
  private var leftovers: [Write] = []
  private var (isRetrying, isBaseDown, isAbandoned) = (false, false, false)
  private var retryTime = 0
  private var failedAttempts = 0
  private var failedSize = 0
  private var acceptedCount = 0
  /// The number of accepted writes that were tried.
  private var triedCount = 0
  /// The number of accepted writes that were tried or are in flight.
  private var flushedCount = 0
  private var runningTurn: Int?
  private var flusher = Flusher.none
  private var due: [Int: Outcome] = [:]
  private var flusherCall = Queue.FlusherCall.none

  /// Every event that may happen now.
  var possibleSteps: [Step] {
    var steps: [Step] = [
      .write("a"), .write("b"), .write("ab"), .turn, .drain(isPatient: true), .drain(isPatient: false), .wait,
    ]
    if !isClosed { steps.append(.close) }
    if isClosed && !isAbandoned { steps.append(.abandon) }
    if failedSize > 0 { steps.append(.takeFailures) }
    for caller in numbers.indices where numbers[caller] != nil && !draining.contains(caller) {
      if told[caller] != .cancelled { steps.append(.leave(caller)) }
    }
    if runningTurn != nil { steps.append(.endTurn) }
    switch flusher {
    case .none: break
    case .asks, .waits: steps.append(.ask)
    case .writes: steps += Ending.allCases.map { .finish($0) }
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
      let batch = ChangeBatch(keys.map { BatchChange.set(StoreKey("\($0)"), write.caller) })
      try arrive(.write(write), .write(SizedBatch(batch, bounds: BatchBounds())))
    case .turn: try arrive(.turn(numbers.count), .turn)
    case .drain(let isPatient):
      let caller = numbers.count
      let outcome = outcome(accepted: acceptedCount, isPatient: isPatient)
      if !isClosed && outcome == nil { drains.append((caller, acceptedCount, isPatient)) }
      settle()
      let (arrival, consequences) = queue.drain(.all, isPatient: isPatient, caller, at: time)
      numbers.append(nil)
      switch arrival {
      case .refused: try expect(isClosed, "a drain is refused")
      case .begins: try expect(!isClosed && outcome == .done, "a drain begins")
      case .fails: try expect(!isClosed && outcome == .down, "a drain fails")
      case .waits(let number):
        try expect(!isClosed && outcome == nil, "a drain waits")
        numbers[caller] = number
        draining.insert(caller)
      }
      try check(consequences)
    case .abandon:
      isAbandoned = true
      settle()
      try check(queue.abandon(at: time))
    case .close:
      let caller = numbers.count
      isClosed = true
      let isQuiet = isQuiet
      if !isQuiet { drains.append((caller, nil, true)) }
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
    case .finish(let ending): try finish(ending, at: time)
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
        try carryOut(.finish(.success))
      } else {
        break
      }
    }
    for caller in numbers.indices where numbers[caller] != nil {
      try expect(told[caller] != nil, "\(caller) received no outcome")
    }
    try expect(queue.isIdle, "the queue is not idle at the end")
    let expected = leftovers.map { batch(of: $0) }
    try expect(queue.takeLeftovers().map(\.batch) == expected, "the leftovers are not \(expected)")
  }

  // MARK: The model

  /// The callers that wait for a drain.
  private var draining: Set<Int> = []

  private var isDrained: Bool { pending.isEmpty && inFlight.isEmpty && retained.isEmpty }
  private var isPatienceOver: Bool { failedAttempts > WriteBehindQueueRun.readRetries }

  private func batch(of write: Write) -> ChangeBatch<Int> {
    ChangeBatch(write.keys.map { BatchChange.set(StoreKey("\($0)"), write.caller) })
  }

  /// Returns the outcome of a drain, or `nil` if it waits.
  private func outcome(accepted: Int?, isPatient: Bool) -> Outcome? {
    guard let accepted else { return isQuiet ? .done : nil }
    if isAbandoned && inFlight.isEmpty { return .closed }
    let isStuck = !retained.isEmpty || isRetrying
    if accepted <= triedCount && !isStuck { return .done }
    return !isPatient && isPatienceOver && (isStuck || isBaseDown) ? .down : nil
  }
  private var isQuiet: Bool { isDrained && runningTurn == nil && line.isEmpty }

  /// Returns the number of changes in some writes.
  private static func size(_ writes: [Write]) -> Int { writes.reduce(0) { $0 + $1.keys.count } }

  private var isFlushWanted: Bool {
    !pending.isEmpty && !isBaseDown
      && (isClosed || !line.isEmpty || !drains.isEmpty
        || WriteBehindQueueRun.size(pending) >= WriteBehindQueueRun.limit / 2)
  }

  private mutating func settle() {
    if isAbandoned {
      for request in line { due[request.caller] = .closed }
      line = []
      if inFlight.isEmpty {
        leftovers += retained + pending
        (retained, pending, isBaseDown) = ([], [], false)
      }
    }
    for case .turn(let caller) in line where !isDrained && isPatienceOver { due[caller] = .down }
    line.removeAll { due[$0.caller] != nil }
    serving: while runningTurn == nil, let first = line.first {
      switch first {
      case .turn(let caller):
        guard isDrained else { break serving }
        runningTurn = caller
        due[caller] = .turn
      case .write(let write):
        let used = WriteBehindQueueRun.size(pending) + WriteBehindQueueRun.size(inFlight + retained) + failedSize
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
    let outcomes = drains.map { outcome(accepted: $0.accepted, isPatient: $0.isPatient) }
    for (drain, outcome) in zip(drains, outcomes) { if let outcome { due[drain.caller] = outcome } }
    drains = zip(drains, outcomes).filter { $1 == nil }.map(\.0)
    if flusher == .none, !pending.isEmpty {
      flusher = .asks
      flusherCall = .start
    } else if flusher == .waits, isFlushWanted || isDrained {
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
    case .fails:
      let outcome = due.removeValue(forKey: caller)
      try expect(outcome == .full || outcome == .down, "\(caller) fails")
    case .waits(let number):
      try expect(due[caller] == nil, "\(caller) waits without a reason")
      numbers[caller] = number
    }
    try check(consequences)
  }

  private mutating func ask(at time: Duration) throws {
    let isDue = now - pendingSince >= WriteBehindQueueRun.maximumAge
    let isRetryDue = !retained.isEmpty && now >= retryTime
    let isPendingDue = !pending.isEmpty && !isBaseDown && (isFlushWanted || isDue)
    switch queue.nextFlusherStep(at: time) {
    case .end:
      try expect(pending.isEmpty && retained.isEmpty, "the flusher ends with pending changes")
      flusher = .none
    case .wait(let duration):
      try expect(!isPendingDue && !isRetryDue, "the flusher waits")
      let times = [
        pending.isEmpty || isBaseDown ? nil : WriteBehindQueueRun.maximumAge - now + pendingSince,
        retained.isEmpty ? nil : retryTime - now,
      ]
      try expect(duration == times.compactMap { $0 }.min().map { .seconds($0) }, "the flusher waits \(duration)")
      flusher = .waits
    case .flush(let batches, let others, let isolatesErrors):
      try expect(isPendingDue || isRetryDue, "a flush before its time")
      try expect(runningTurn == nil && inFlight.isEmpty, "a flush at the wrong time")
      try expect(isolatesErrors == isPatienceOver, "the flush isolates errors: \(isolatesErrors)")
      isRetrying = isRetryDue
      if isRetryDue { (inFlight, retained) = (retained, []) }
      if !isRetryDue || isBaseDown {
        inFlight += pending
        pending = []
        flushedCount = acceptedCount
      }
      flusher = .writes
      try expect(batches.map(\.batch) == inFlight.map { batch(of: $0) }, "\(batches) are flushed")
      try expect(others.map(\.batch) == retained.map { batch(of: $0) }, "\(others) are retained")
    }
  }

  private mutating func finish(_ ending: Ending, at time: Duration) throws {
    var result = Queue.FlushResult()
    let error = StoreError(.locked, during: .apply, message: "", isRetryable: true)
    let flown = inFlight
    let isNewAttempt = isRetrying || retained.isEmpty
    (inFlight, isRetrying, isBaseDown) = ([], false, false)
    triedCount = flushedCount
    switch ending {
    case .success: retained = WriteBehindQueueRun.rest(of: retained, after: flown[...])
    case .failure:
      retained = WriteBehindQueueRun.rest(of: retained, after: flown.dropFirst())
      result.failures = [WriteBehindFailure([sized(flown[0])], error: error)]
      failedSize += flown[0].keys.count
    case .oneRetry:
      retained = WriteBehindQueueRun.rest(of: retained + [flown[0]], after: flown.dropFirst())
      result.error = error
    case .outage:
      retained += flown
      result.error = error
      isBaseDown = true
    }
    for write in retained { result.retained.add(sized(write)) }
    result.isBaseDown = isBaseDown
    if retained.isEmpty {
      failedAttempts = 0
    } else if result.error != nil, isNewAttempt {
      failedAttempts += 1
      retryTime = now + 1
    }
    flusher = .asks
    settle()
    try check(queue.finishFlush(result, at: time))
  }

  private func sized(_ write: Write) -> SizedBatch<Int> { SizedBatch(batch(of: write), bounds: BatchBounds()) }

  /// Returns writes without the keys of later ones that were written.
  private static func rest(of writes: [Write], after written: ArraySlice<Write>) -> [Write] {
    let keys = Set(written.flatMap(\.keys))
    return writes.compactMap { write in
      let rest = write.keys.filter { !keys.contains($0) }
      return rest.isEmpty ? nil : Write(caller: write.caller, keys: rest)
    }
  }

  // MARK: Checks

  private static func outcome(_ outcome: TurnOutcome) -> Outcome {
    switch outcome {
    case .turn: .turn
    case .finished(nil): .done
    case .finished(let error?):
      switch (error as? StoreError)?.code {
      case .full: .full
      case .closed: .closed
      case .locked: .down
      default: .cancelled
      }
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
      let expected =
        (pending.last { $0.keys.contains(key) } ?? inFlight.last { $0.keys.contains(key) }
        ?? retained.last { $0.keys.contains(key) })?.caller
      var found: Int?
      if case .set(let value)? = queue[StoreKey("\(key)")] { found = value }
      try expect(found == expected, "\(key) is \(String(describing: found))")
    }
    let size = WriteBehindQueueRun.size(pending + inFlight + retained)
    let statistics = queue.statistics(at: .seconds(now))
    try expect(statistics.pendingChanges == size, "\(statistics.pendingChanges) changes are pending")
    try expect(size + failedSize <= WriteBehindQueueRun.limit, "\(size) changes are above the limit")
    if runningTurn != nil { try expect(isDrained, "writes are pending during a turn") }
  }
}
