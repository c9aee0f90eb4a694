public import Larder

/// Lets several tasks use one store at the same time, and checks that what they saw can be explained by one order of
/// everything they did.
///
/// ```swift
/// let trial = ConcurrencyTrial("JSONFileStore") { location in
///   try await JSONFileStore<Int>(path: location.path("store.json"))
/// }
/// try await trial.run(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// ```
///
/// Every ``ConformanceSuite`` runs some as well.
public struct ConcurrencyTrial<Store: DataStore>: Sendable where Store.Value == Int {
  private let name: String
  private let mayFail: Bool
  private let open: @Sendable (ConformanceLocation) async throws -> Store

  /// Makes trials of a kind of store.
  ///
  /// - Parameters:
  ///   - name: What failures call the store.
  ///   - mayFail: Whether an operation may throw a `StoreError`, as on a ``FaultyStore``; its outcome must then be true.
  ///     `false` unless given.
  ///   - open: Opens the store at a location; it is called for each round.
  public init(
    _ name: String, mayFail: Bool = false, open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) {
    self.name = name
    self.mayFail = mayFail
    self.open = open
  }

  /// Runs random steps in several tasks, over and over.
  ///
  /// In every other round each step concerns a single key; in the others many concern several, so that batches, updates
  /// and reads of several keys are seen to be one step.
  ///
  /// - Parameters:
  ///   - rounds: How many times.
  ///   - seed: Decides the steps; which of them run at the same time is left to the system.
  ///   - tasks: How many tasks; 4 unless said.
  ///   - length: How many steps each of them does; 10 unless said.
  /// - Throws: ``ConcurrencyTrialFailure`` where the store breaks a promise; `CancellationError` where the task is
  ///   cancelled.
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
          store: name, seed: seed, message: "no order of these operations explains what they gave",
          violation: violation)
      }
    }
  }

  /// Opens the store at a fresh location and carries out a plan.
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

  /// Does one step.
  ///
  /// - Returns: The operation, or `nil` where it is known to have had no effect.
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
