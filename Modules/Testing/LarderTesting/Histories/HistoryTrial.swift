public import Larder

/// A trial that runs histories on a store and on a model, and compares their results.
///
/// ```swift
/// let trial = HistoryTrial("JSONFileStore") { location in
///   try await JSONFileStore<Int>(path: location.path("store.json"))
/// }
/// try await trial.run(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// try await trial.runEveryHistory(upToLength: 3)
/// try await trial.runConcurrently(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// ```
///
/// Every ``ConformanceSuite`` runs such trials too.
public struct HistoryTrial<Store: DataStore>: Sendable {
  let name: String
  private let lacking: StoreCapabilities
  private let open: @Sendable (ConformanceLocation) async throws -> Store
  let perform: @Sendable (HistoryStep, Store) async throws -> HistoryResult

  /// Creates a trial for a kind of store.
  ///
  /// - Parameters:
  ///   - name: The name of the store in failures.
  ///   - lacking: The capabilities that the store lacks, which no step needs. Defaults to an empty set.
  ///   - open: A closure that opens the store at a location. It is called for each history, and again with the same
  ///     location to reopen a store that was closed or dropped.
  public init(
    _ name: String, lacking: StoreCapabilities = [],
    open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) where Store.Value == Int {
    self.init(name, lacking: lacking, openingAny: open)
  }

  /// Creates a trial for a kind of store whose values stand for integers.
  init(
    _ name: String, lacking: StoreCapabilities,
    openingAny open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) where Store.Value: HistoryValue {
    self.name = name
    self.lacking = lacking
    self.open = open
    perform = { step, store in try await step.run(on: store) }
  }

  /// Runs random histories.
  ///
  /// - Parameters:
  ///   - rounds: The number of histories.
  ///   - seed: The seed of the histories.
  ///   - length: The number of steps in a history. Defaults to 40.
  /// - Throws: ``TrialFailure`` with a history as short as possible; `CancellationError` if the task is cancelled.
  public func run(rounds: Int, seed: UInt64, length: Int = 40) async throws {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<max(0, rounds) {
      let history = HistoryStep.history(length: length, lacking: lacking, using: &generator)
      guard let failure = try await failure(of: history) else { continue }
      var shortest = try await shrink(history, failure, attempts: 1_000) { try await self.failure(of: $0) }
      shortest.seed = seed
      throw shortest
    }
  }

  /// Runs every history of a few steps on two keys.
  ///
  /// - Parameters:
  ///   - length: The maximum number of steps. There are about ten kinds of steps, so there are about a thousand
  ///     histories for a length of 3.
  ///   - share: The share of the longest histories to run, from 0 to 1. Defaults to 1, meaning all of them.
  ///   - seed: The seed that determines the selection. Defaults to the seed of the process.
  /// - Throws: ``TrialFailure`` for one of the shortest failing histories; `CancellationError` if the task is
  ///   cancelled.
  public func runEveryHistory(
    upToLength length: Int, share: Double = 1, seed: UInt64 = SeededGenerator.seedOfProcess
  ) async throws {
    let steps = HistoryStep.fewSteps.filter { $0.isPossible(lacking: lacking) }
    for history in HistoryStep.everyHistory(of: steps, upToLength: length, share: share, seed: seed) {
      try await repeatTrial(history)
    }
  }

  /// Runs one history, then checks the contents of the store.
  ///
  /// - Parameter history: The steps.
  /// - Throws: ``TrialFailure`` if the store breaks a promise; `CancellationError` if the task is cancelled.
  public func repeatTrial(_ history: [HistoryStep]) async throws {
    if let failure = try await failure(of: history) { throw failure }
  }

  /// Runs a history at a fresh location.
  ///
  /// - Returns: The failure, or `nil` if the store keeps its promises.
  private func failure(of history: [HistoryStep]) async throws -> TrialFailure? {
    try Task.checkCancellation()
    let location = try ConformanceLocation()
    var run = Run(rest: history[...])
    var message: String?
    do {
      while try await !reachesEnd(&run, at: location) {}
    } catch {
      message = run.message(about: error)
    }
    try location.remove()
    try Task.checkCancellation()
    return message.map { TrialFailure(store: name, message: $0, history: history) }
  }

  /// Opens the store and runs steps up to the next reopening or the end.
  ///
  /// This method has the only reference to the store, so returning without closing the store drops it.
  ///
  /// - Returns: A Boolean value that indicates whether the end was reached.
  private func reachesEnd(_ run: inout Run, at location: ConformanceLocation) async throws -> Bool {
    let store = run.wasDropped ? try await openAgain { try await open(location) } : try await open(location)
    run.wasDropped = false
    while let step = run.rest.first {
      try run.expect(try await perform(step, store), of: step)
      run.advance(over: step)
      if step == .reopen { try await store.close() }
      if step == .die { run.wasDropped = true }
      if step == .reopen || step == .die { return false }
    }
    for step in [HistoryStep.entries(.all, limit: .max, .ascending), .values(HistoryStep.keys), .count(.all)] {
      try run.expect(try await perform(step, store), of: step)
    }
    try await store.close()
    return true
  }

  /// Opens a store at a fresh location, runs a closure, closes the store, and removes the location.
  func withStore<Result>(_ body: (Store) async throws -> Result) async throws -> Result {
    let location = try ConformanceLocation()
    do {
      let store = try await open(location)
      let result = try await body(store)
      try await store.close()
      try location.remove()
      return result
    } catch {
      try location.remove()
      throw error
    }
  }

  /// The remaining steps of a history, and the state of the model.
  private struct Run {
    var rest: ArraySlice<HistoryStep>
    var state: [StoreKey: Int] = [:]
    /// A Boolean value that indicates whether the store was dropped without closing it.
    var wasDropped = false

    func expect(_ result: HistoryResult, of step: HistoryStep) throws {
      let expected = step.result(in: state)
      guard result != expected else { return }
      throw Mismatch(subject: "\(step)", expected: "\(expected)", got: "\(result)")
    }

    mutating func advance(over step: HistoryStep) {
      state = step.applied(to: state)
      rest.removeFirst()
    }

    func message(about error: any Error) -> String {
      let place = rest.isEmpty ? "at the end" : "at step \(rest.startIndex)"
      if let mismatch = error as? Mismatch {
        return "\(place), \(mismatch.subject) returned \(mismatch.got), expected \(mismatch.expected)"
      }
      return "\(place), \(rest.first.map { "\($0) " } ?? "the store ")threw \(text(of: error))"
    }
  }
}

/// A broken promise that a ``HistoryTrial`` or a ``DiskTrial`` has found, with all details to repeat it.
public struct TrialFailure: Error {
  /// The name of the store.
  public let store: String

  /// A description of the broken promise.
  public let message: String

  /// The steps that lead to the failure, as few as were found; empty if steps ran concurrently.
  public var history: [HistoryStep] = []

  /// The seed of a random history, or of the data that a simulated disk kept.
  public var seed: UInt64?

  /// The fault of a simulated disk and the number of its operation.
  public var fault: (fault: SimulatedFault, operation: Int)?

  /// The last operation of the disk that had a fault and its path, such as `write /store.json`.
  public var faultyOperation: String?

  /// The shortest concurrent history that no order explains.
  public var violation: ConcurrentHistory?
}

extension TrialFailure: CustomStringConvertible {
  /// A readable description of the failure, which contains the history as Swift source code.
  public var description: String {
    var details: [String] = []
    if let seed { details.append("seed \(seed)") }
    if let fault {
      let place = faultyOperation.map { ", the last fault at \($0)" } ?? ""
      details.append("\(fault.fault) at operation \(fault.operation)\(place)")
    }
    if let violation {
      details.append("history:\n\(violation)")
    } else {
      details.append("history:\n[\n\(history.map { "  \($0),\n" }.joined())]")
    }
    return "\(store): \(message)\n(\(details.joined(separator: ", ")))"
  }
}
