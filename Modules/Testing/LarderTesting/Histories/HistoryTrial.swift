public import Larder

/// A trial that runs histories on a store and on a model, and compares their results.
///
/// ```swift
/// let trial = HistoryTrial("JSONFileStore") { location in
///   try await JSONFileStore<Int>(path: location.path("store.json"))
/// }
/// try await trial.run(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// try await trial.runEveryHistory(upToLength: 3)
/// ```
///
/// Every ``ConformanceSuite`` runs such trials too.
public struct HistoryTrial<Store: DataStore>: Sendable where Store.Value == Int {
  private let name: String
  private let lacking: StoreCapabilities
  private let open: @Sendable (ConformanceLocation) async throws -> Store

  /// Creates a trial for a kind of store.
  ///
  /// - Parameters:
  ///   - name: The name of the store, which failures show.
  ///   - lacking: The capabilities that the store lacks, which no step needs; defaults to none.
  ///   - open: A closure that opens the store at a location. It is called for each history, and again with the same
  ///     location to reopen a store that was closed or dropped.
  public init(
    _ name: String, lacking: StoreCapabilities = [],
    open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) {
    self.name = name
    self.lacking = lacking
    self.open = open
  }

  /// Runs random histories.
  ///
  /// - Parameters:
  ///   - rounds: The number of histories.
  ///   - seed: The seed of the histories.
  ///   - length: The number of steps in a history; defaults to 40.
  /// - Throws: ``HistoryTrialFailure`` with a history as short as possible; `CancellationError` if the task is
  ///   cancelled.
  public func run(rounds: Int, seed: UInt64, length: Int = 40) async throws {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<max(0, rounds) {
      let history = HistoryStep.history(length: length, lacking: lacking, using: &generator)
      guard let failure = try await failure(of: history) else { continue }
      var shrinker = HistoryShrinker(history, attempts: 1_000)
      var shrunk = try await shrinker.shrink(failure) { try await self.failure(of: $0) }
      shrunk.seed = seed
      throw shrunk
    }
  }

  /// Runs every history of a few steps on two keys.
  ///
  /// - Parameter length: The maximum number of steps. There are about ten kinds of steps, so there are about a thousand
  ///   histories for a length of 3.
  /// - Throws: ``HistoryTrialFailure`` for one of the shortest failing histories; `CancellationError` if the task is
  ///   cancelled.
  public func runEveryHistory(upToLength length: Int) async throws {
    let steps = HistoryStep.fewSteps.filter { $0.isPossible(lacking: lacking) }
    var histories: [[HistoryStep]] = [[]]
    for _ in 0..<max(0, length) {
      histories = histories.flatMap { history in steps.map { history + [$0] } }
      for history in histories {
        if let failure = try await failure(of: history) { throw failure }
      }
    }
  }

  /// Runs one history, then checks the contents of the store.
  ///
  /// - Parameter history: The steps.
  /// - Throws: ``HistoryTrialFailure`` if the store breaks a promise; `CancellationError` if the task is cancelled.
  public func repeatTrial(_ history: [HistoryStep]) async throws {
    if let failure = try await failure(of: history) { throw failure }
  }

  /// Runs a history at a fresh location.
  ///
  /// - Returns: The failure, or `nil` if the store keeps its promises.
  private func failure(of history: [HistoryStep]) async throws -> HistoryTrialFailure? {
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
    return message.map { HistoryTrialFailure(store: name, history: history, message: $0) }
  }

  /// Opens the store and runs steps up to the next reopening or the end.
  ///
  /// This method has the only reference to the store, so returning without closing the store drops it.
  ///
  /// - Returns: Whether the end was reached.
  private func reachesEnd(_ run: inout Run, at location: ConformanceLocation) async throws -> Bool {
    let store = run.wasDropped ? try await openAgain { try await open(location) } : try await open(location)
    run.wasDropped = false
    while let step = run.rest.first {
      let result = try await step.run(on: store)
      try run.expect(result, of: step)
      run.advance(over: step)
      if step == .reopen { try await store.close() }
      if step == .die { run.wasDropped = true }
      if step == .reopen || step == .die { return false }
    }
    for step in [HistoryStep.entries(.all, limit: .max, .ascending), .values(HistoryStep.keys), .count(.all)] {
      try run.expect(try await step.run(on: store), of: step)
    }
    try await store.close()
    return true
  }

  /// The remaining steps of a history, and the state of the model.
  private struct Run {
    var rest: ArraySlice<HistoryStep>
    var state: [StoreKey: Int] = [:]
    /// Whether the store was dropped without closing it.
    var wasDropped = false

    func expect(_ result: HistoryResult, of step: HistoryStep) throws {
      let expected = step.result(in: state)
      guard result != expected else { return }
      throw Mismatch(subject: "\(step)", expected: "\(expected)", got: "\(result)", place: "")
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

/// A broken promise that a ``HistoryTrial`` has found, with all details to repeat it.
public struct HistoryTrialFailure: Error, CustomStringConvertible {
  /// The name of the store.
  public let store: String

  /// The steps that lead to the failure, as few as were found.
  public let history: [HistoryStep]

  /// The seed of the history; `nil` if the history was not random.
  public internal(set) var seed: UInt64?

  /// A description of the broken promise.
  public let message: String

  /// A readable description of the failure.
  public var description: String {
    let seed = seed.map { "seed \($0), " } ?? ""
    let steps = history.map { "  \($0)," }.joined(separator: "\n")
    return "\(store): \(message)\n(\(seed)history:\n[\n\(steps)\n])"
  }
}
