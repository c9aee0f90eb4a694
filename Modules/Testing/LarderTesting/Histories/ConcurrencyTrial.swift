public import Larder

/// A trial in which several tasks use one store concurrently, and whose results must be linearizable.
///
/// The results are linearizable if one order of all operations explains them; see ``ConcurrentHistory``.
///
/// ```swift
/// let trial = ConcurrencyTrial("JSONFileStore") { location in
///   try await JSONFileStore<Int>(path: location.path("store.json"))
/// }
/// try await trial.run(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// ```
///
/// Every ``ConformanceSuite`` runs such trials too.
public struct ConcurrencyTrial<Store: DataStore>: Sendable where Store.Value == Int {
  private let name: String
  private let mayFail: Bool
  private let open: @Sendable (ConformanceLocation) async throws -> Store

  /// Creates a trial for a kind of store.
  ///
  /// - Parameters:
  ///   - name: The name of the store, which failures show.
  ///   - mayFail: Whether operations may throw a `StoreError`, as those of a ``FaultyStore`` do; defaults to `false`.
  ///     The outcome of such an error must be correct.
  ///   - open: A closure that opens the store at a location, called for each round.
  public init(
    _ name: String, mayFail: Bool = false, open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) {
    self.name = name
    self.mayFail = mayFail
    self.open = open
  }

  /// Runs rounds of random steps in several tasks.
  ///
  /// In every other round, each step concerns a single key. In the other rounds, many steps concern several keys, to
  /// check that batches, updates and reads of several keys are atomic.
  ///
  /// - Parameters:
  ///   - rounds: The number of rounds.
  ///   - seed: The seed of the steps. The system determines which steps run concurrently.
  ///   - tasks: The number of tasks; defaults to 4.
  ///   - length: The number of steps of each task; defaults to 10.
  /// - Throws: ``ConcurrencyTrialFailure`` if the store breaks a promise; `CancellationError` if the task is cancelled.
  public func run(rounds: Int, seed: UInt64, tasks: Int = 4, length: Int = 10) async throws {
    var generator = SeededGenerator(seed: seed)
    for round in 0..<max(0, rounds) {
      try Task.checkCancellation()
      let joinsKeys = !round.isMultiple(of: 2)
      let plan = ConcurrentPlan(tasks: tasks, length: length, joinsKeys: joinsKeys, using: &generator)
      let history: ConcurrentHistory
      do {
        history = try await record(plan)
      } catch {
        try Task.checkCancellation()
        throw ConcurrencyTrialFailure(
          store: name, seed: seed, message: "an operation threw \(text(of: error))", violation: nil)
      }
      if let violation = history.violation {
        throw ConcurrencyTrialFailure(
          store: name, seed: seed, message: "no order of these operations explains their results",
          violation: violation)
      }
    }
  }

  /// Runs a plan on a store at a fresh location.
  private func record(_ plan: ConcurrentPlan) async throws -> ConcurrentHistory {
    let location = try ConformanceLocation()
    let history: Result<ConcurrentHistory, any Error>
    do {
      let store = try await open(location)
      let recorded = try await record(plan, on: store)
      try await store.close()
      history = .success(recorded)
    } catch {
      history = .failure(error)
    }
    try location.remove()
    return try history.get()
  }

  private func record(_ plan: ConcurrentPlan, on store: Store) async throws -> ConcurrentHistory {
    let events = Tally()
    var operations = try await withThrowingTaskGroup(of: [ConcurrentOperation].self) { group in
      for (task, moves) in plan.moves.enumerated() {
        group.addTask {
          var operations: [ConcurrentOperation] = []
          for move in moves {
            for _ in 0..<move.yields { await Task.yield() }
            if let operation = try await run(move.step, task: task, on: store, counting: events) {
              operations.append(operation)
            }
          }
          return operations
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    for step in plan.lastSteps {
      if let operation = try await run(step, task: plan.moves.count, on: store, counting: events) {
        operations.append(operation)
      }
    }
    return ConcurrentHistory(operations)
  }

  /// Runs one step.
  ///
  /// - Returns: The operation, or `nil` if it is known to have had no effect.
  private func run(
    _ step: HistoryStep, task: Int, on store: Store, counting events: Tally
  ) async throws -> ConcurrentOperation? {
    let invocation = events.add()
    do {
      let result = try await step.run(on: store)
      return ConcurrentOperation(
        task: task, step, invocation: invocation, response: .init(result, time: events.add()))
    } catch let error as StoreError where mayFail {
      guard error.outcome == .unknown else { return nil }
      return ConcurrentOperation(task: task, step, invocation: invocation, response: nil)
    }
  }
}

/// A broken promise that a ``ConcurrencyTrial`` has found.
public struct ConcurrencyTrialFailure: Error, CustomStringConvertible {
  /// The name of the store.
  public let store: String

  /// The seed of the steps.
  ///
  /// The system determined which steps ran concurrently.
  public let seed: UInt64

  /// A description of the broken promise.
  public let message: String

  /// The shortest history that no order explains; `nil` if an operation failed.
  public let violation: ConcurrentHistory?

  /// A readable description of the failure.
  public var description: String {
    let lines = violation.map { "\n\($0)" } ?? ""
    return "\(store): \(message) (seed \(seed))\(lines)"
  }
}

/// The steps of each task in one round of a ``ConcurrencyTrial``.
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
  ///   - joinsKeys: Whether steps concern several keys.
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
