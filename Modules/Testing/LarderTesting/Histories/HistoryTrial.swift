public import Larder

/// Runs histories on a store and, beside it, on a model, and compares what they give.
///
/// ```swift
/// let trial = HistoryTrial("JSONFileStore") { location in
///   try await JSONFileStore<Int>(path: location.path("store.json"))
/// }
/// try await trial.run(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// try await trial.runEveryHistory(upToLength: 3)
/// ```
///
/// Every ``ConformanceSuite`` runs some as well.
public struct HistoryTrial<Store: DataStore>: Sendable where Store.Value == Int {
  private let name: String
  private let lacking: StoreAbilities
  private let open: @Sendable (ConformanceLocation) async throws -> Store

  /// Makes trials of a kind of store.
  ///
  /// - Parameters:
  ///   - name: What failures call the store.
  ///   - lacking: What the store cannot do, so that no step asks for it; nothing unless given.
  ///   - open: Opens the store at a location. It is called for each history, and again with the same location to reopen
  ///     what was closed or dropped.
  public init(
    _ name: String, lacking: StoreAbilities = [], open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) {
    self.name = name
    self.lacking = lacking
    self.open = open
  }

  /// Runs random histories.
  ///
  /// - Parameters:
  ///   - rounds: How many.
  ///   - seed: Decides them.
  ///   - length: How many steps a history has; 40 unless said.
  /// - Throws: ``HistoryTrialFailure``, whose history was made as short as possible; `CancellationError` where the task
  ///   is cancelled.
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
  /// - Parameter length: How many steps the longest have. There are about ten kinds of steps, so a length of 3 makes a
  ///   thousand histories.
  /// - Throws: ``HistoryTrialFailure`` for one of the shortest histories that fail; `CancellationError` where the task is
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

  /// Runs one history, and afterwards compares everything that the store holds.
  ///
  /// - Parameter history: The steps.
  /// - Throws: ``HistoryTrialFailure`` where the store breaks a promise; `CancellationError` where the task is cancelled.
  public func repeatTrial(_ history: [HistoryStep]) async throws {
    if let failure = try await failure(of: history) { throw failure }
  }

  /// Runs a history in a fresh location.
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

  /// Opens the store and runs steps up to one after which it is to be opened anew, or to the end.
  ///
  /// The only reference to the store is here, so returning without closing it drops it.
  ///
  /// - Returns: Whether that was the end.
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

  /// How far a history has been run, and what the model holds.
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
        return "\(place), \(mismatch.subject) gave \(mismatch.got), expected \(mismatch.expected)"
      }
      return "\(place), \(rest.first.map { "\($0) " } ?? "the store ")threw \(text(of: error))"
    }
  }
}
