import Larder

extension HistoryTrial {
  /// Runs rounds of random steps in several tasks that use one store concurrently.
  ///
  /// The results must be linearizable: one order of all operations must explain them. In every other round, each step
  /// concerns a single key. In the other rounds, many steps concern several keys, to check that batches, updates and
  /// reads of several keys are atomic. The seed decides which kind is first.
  ///
  /// - Parameters:
  ///   - rounds: The number of rounds, each with a fresh store.
  ///   - seed: The seed of the steps. The system determines which steps run concurrently.
  ///   - tasks: The number of tasks. Defaults to 4.
  ///   - length: The number of steps of each task. Defaults to 10.
  ///   - mayFail: A Boolean value that indicates whether operations may throw a `StoreError`, as those of a
  ///     ``FaultyStore`` do. Defaults to `false`. The outcome of such an error must be correct.
  ///   - mayCancel: A closure that receives the task of each operation, and may cancel it at any time, for example by
  ///     ``ScheduledContext/mayCancel(_:)``. An operation that throws `CancellationError` must have had no effect. Defaults to
  ///     `nil`; the operations then have no tasks of their own, and must not throw the error.
  /// - Throws: ``TrialFailure`` if the store breaks a promise; `CancellationError` if the task is cancelled.
  public func runConcurrently(
    rounds: Int, seed: UInt64, tasks: Int = 4, length: Int = 10, mayFail: Bool = false,
    mayCancel: (@Sendable (_ operation: Task<HistoryResult, any Error>) -> Void)? = nil
  ) async throws {
    var generator = SeededGenerator(seed: seed)
    // A trial of one round for each schedule reaches both kinds.
    var kinds = SeededGenerator(seed: seed, purpose: "kinds of rounds")
    let joinsKeysFirst = Bool.random(using: &kinds)
    for round in 0..<max(0, rounds) {
      try Task.checkCancellation()
      let plan = ConcurrentPlan(
        tasks: tasks, length: length, joinsKeys: round.isMultiple(of: 2) == joinsKeysFirst, using: &generator)
      let history: ConcurrentHistory
      do {
        history = try await withStore { store in
          try await Recorder(mayFail: mayFail, mayCancel: mayCancel) { try await perform($0, store) }.record(plan)
        }
      } catch {
        try Task.checkCancellation()
        throw TrialFailure(store: name, message: "an operation threw \(text(of: error))", seed: seed)
      }
      if let violation = history.violation {
        throw TrialFailure(
          store: name, message: "no order of these operations explains their results", seed: seed,
          violation: violation)
      }
    }
  }
}

/// A recorder of the operations of several tasks on a store.
private struct Recorder: Sendable {
  let mayFail: Bool
  let mayCancel: (@Sendable (_ operation: Task<HistoryResult, any Error>) -> Void)?
  let perform: @Sendable (HistoryStep) async throws -> HistoryResult
  private let events = Tally()

  func record(_ plan: ConcurrentPlan) async throws -> ConcurrentHistory {
    let operations = Locked<[ConcurrentOperation]>([])
    @Sendable func run(_ moves: [ConcurrentPlan.Move], task: Int, mayCancel: Bool) async throws {
      for move in moves {
        for _ in 0..<move.yields { await suspendOnce() }
        guard let operation = try await self.run(move.step, task: task, mayCancel: mayCancel) else { continue }
        operations.withLock { $0.append(operation) }
      }
    }
    try await concurrently(plan.moves.count) { try await run(plan.moves[$0], task: $0, mayCancel: true) }
    let lastMoves = plan.lastSteps.map { ConcurrentPlan.Move(yields: 0, step: $0) }
    try await run(lastMoves, task: plan.moves.count, mayCancel: false)
    return ConcurrentHistory(operations.withLock { $0 })
  }

  /// Runs one step.
  ///
  /// - Returns: The operation, or `nil` if it is known to have had no effect.
  private func run(_ step: HistoryStep, task: Int, mayCancel isCancellable: Bool) async throws -> ConcurrentOperation? {
    let invocation = events.add()
    var operation: Task<HistoryResult, any Error>?
    do {
      if isCancellable, let mayCancel {
        let task = Task { try await perform(step) }
        operation = task
        mayCancel(task)
      }
      let result = if let operation { try await operation.value } else { try await perform(step) }
      return ConcurrentOperation(
        task: task, step, invocation: invocation, response: .init(result, time: events.add()))
    } catch let error as StoreError where mayFail {
      guard error.outcome == .unknown else { return nil }
      return ConcurrentOperation(task: task, step, invocation: invocation, response: nil)
    } catch is CancellationError where operation?.isCancelled == true {
      // The error of an operation that was not cancelled is a failure: it has come from another one.
      return nil
    }
  }
}

/// The steps of each task in one round.
private struct ConcurrentPlan {
  /// A step, and the number of yields before it.
  struct Move: Sendable {
    let yields: Int
    let step: HistoryStep
  }

  /// The moves of each task.
  private(set) var moves: [[Move]] = []

  /// The reads that follow when all tasks have ended.
  let lastSteps: [HistoryStep]

  private static let keys: [StoreKey] = ["a", "b", "c"]
  private var lastNumber = 0

  /// Creates a random plan.
  ///
  /// - Parameters:
  ///   - tasks: The number of tasks.
  ///   - length: The number of steps of each task.
  ///   - joinsKeys: A Boolean value that indicates whether steps concern several keys.
  ///   - generator: The source of randomness.
  init(tasks: Int, length: Int, joinsKeys: Bool, using generator: inout SeededGenerator) {
    lastSteps =
      joinsKeys ? [.entries(.all, limit: .max, .ascending), .count(.all)] : ConcurrentPlan.keys.map { .value($0) }
    for _ in 0..<tasks {
      var list: [Move] = []
      for _ in 0..<max(0, length) {
        let yields = Int.random(in: 0...3, using: &generator)
        list.append(
          Move(yields: yields, step: joinsKeys ? joiningStep(using: &generator) : singleStep(using: &generator)))
      }
      moves.append(list)
    }
  }

  // Each number is written only once, so a value identifies the step that wrote it.
  private mutating func number() -> Int {
    lastNumber += 1
    return lastNumber
  }

  private mutating func singleStep(using generator: inout SeededGenerator) -> HistoryStep {
    let key = ConcurrentPlan.keys.shuffled(using: &generator)[0]
    return switch Int.random(in: 0..<14, using: &generator) {
    case 0..<3: .apply([.set(key, number())])
    case 3: .apply([.remove(key)])
    case 4: .apply([.removeAll(.only(key)), .set(key, number())])
    case 5..<8: .add(number(), to: [key])
    case 8..<10: .value(key)
    case 10: .contains(key)
    case 11: .synchronize
    case 12: .compact
    default: .entries(.only(key), limit: 1, .descending)
    }
  }

  private mutating func joiningStep(using generator: inout SeededGenerator) -> HistoryStep {
    let keys = ConcurrentPlan.keys.shuffled(using: &generator)
    return switch Int.random(in: 0..<16, using: &generator) {
    case 0..<2: .apply(keys.map { .set($0, number()) })
    case 2: .apply([.removeAll(.all), .set(keys[0], number()), .set(keys[1], number())])
    case 3: .apply([.remove(keys[0]), .set(keys[1], number())])
    case 4..<6: .add(number(), to: [keys[0], keys[1]])
    case 6: .abandon(keys)
    case 7..<9: .values(keys)
    case 9: .entries(.all, limit: .max, .descending)
    case 10: .count(.all)
    case 11: .synchronize
    case 12: .compact
    case 13: .keys(keys[0]..., limit: 2, .ascending)
    case 14: .entries(..<keys[0], limit: 1, .descending)
    default: .value(keys[0])
    }
  }
}
