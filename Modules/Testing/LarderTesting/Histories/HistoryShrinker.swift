/// Makes the history of a failure short: leaves out steps, and parts of steps, while the failure stays.
struct HistoryShrinker {
  /// How many more histories may be tried.
  private var attempts: Int
  private var history: [HistoryStep]

  /// Prepares for making a history short.
  ///
  /// - Parameters:
  ///   - history: A history that fails.
  ///   - attempts: How many others to try at most.
  init(_ history: [HistoryStep], attempts: Int) {
    self.history = history
    self.attempts = attempts
  }

  /// Makes the history short.
  ///
  /// - Parameters:
  ///   - failure: How the history fails.
  ///   - run: Runs a history, and gives its failure, or `nil` where it goes well.
  /// - Returns: How the short history fails.
  /// - Throws: What `run` throws.
  mutating func shrink<Failure>(
    _ failure: Failure, running run: ([HistoryStep]) async throws -> Failure?
  ) async throws -> Failure {
    var failure = failure
    var previous: [HistoryStep]
    repeat {
      previous = history
      var length = max(1, history.count / 2)
      while length > 0 {
        try await leaveOut(length, &failure, running: run)
        length /= 2
      }
      try await simplify(&failure, running: run)
    } while history != previous && attempts > 0
    return failure
  }

  private mutating func leaveOut<Failure>(
    _ length: Int, _ failure: inout Failure, running run: ([HistoryStep]) async throws -> Failure?
  ) async throws {
    // From the end, since what comes after the failure never matters.
    var start = history.count - length
    while start >= 0 {
      var candidate = history
      candidate.removeSubrange(start..<min(start + length, candidate.count))
      try await attempt(candidate, &failure, running: run)
      start -= length
    }
  }

  private mutating func simplify<Failure>(
    _ failure: inout Failure, running run: ([HistoryStep]) async throws -> Failure?
  ) async throws {
    for index in history.indices {
      for step in history[index].simplerSteps {
        var candidate = history
        candidate[index] = step
        if try await attempt(candidate, &failure, running: run) { break }
      }
    }
  }

  @discardableResult
  private mutating func attempt<Failure>(
    _ candidate: [HistoryStep], _ failure: inout Failure, running run: ([HistoryStep]) async throws -> Failure?
  ) async throws -> Bool {
    guard attempts > 0 else { return false }
    attempts -= 1
    guard let found = try await run(candidate) else { return false }
    history = candidate
    failure = found
    return true
  }
}
