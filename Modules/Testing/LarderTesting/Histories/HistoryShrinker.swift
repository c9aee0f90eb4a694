import Larder

/// A shrinker that shortens a failing history by removing steps and parts of steps while the history still fails.
struct HistoryShrinker {
  /// The remaining number of histories to try.
  private var attempts: Int
  private var history: [HistoryStep]

  /// Creates a shrinker.
  ///
  /// - Parameters:
  ///   - history: A failing history.
  ///   - attempts: The maximum number of other histories to try.
  init(_ history: [HistoryStep], attempts: Int) {
    self.history = history
    self.attempts = attempts
  }

  /// Shortens the history.
  ///
  /// - Parameters:
  ///   - failure: The failure of the history.
  ///   - run: A closure that runs a history and returns its failure, or `nil` if it succeeds.
  /// - Returns: The failure of the shortened history.
  /// - Throws: Any error from `run`.
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
    // Steps are removed from the end first, because steps after the failure never matter.
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

extension HistoryStep {
  /// Simpler steps of the same kind, which make a failing history easier to read.
  var simplerSteps: [HistoryStep] {
    switch self {
    case .apply(let changes) where changes.count > 1: HistoryStep.leavingOutOne(of: changes).map { .apply($0) }
    case .add(let number, let keys) where keys.count > 1:
      HistoryStep.leavingOutOne(of: keys).map { .add(number, to: $0) }
    case .abandon(let keys) where keys.count > 1: HistoryStep.leavingOutOne(of: keys).map { .abandon($0) }
    case .values(let keys) where !keys.isEmpty: HistoryStep.leavingOutOne(of: keys).map { .values($0) }
    case .entries(let range, let limit, let order) where limit < .max || range != .all:
      [.entries(.all, limit: .max, order), .entries(range, limit: .max, order), .entries(.all, limit: limit, order)]
    case .keys(let range, let limit, let order) where limit < .max || range != .all:
      [.keys(.all, limit: .max, order), .keys(range, limit: .max, order), .keys(.all, limit: limit, order)]
    case .count(let range) where range != .all: [.count(.all)]
    case .pages(let range, let size, let order) where range != .all: [.pages(.all, size: size, order)]
    default: []
    }
  }

  private static func leavingOutOne<Element>(of list: [Element]) -> [[Element]] {
    list.indices.map { index in
      var list = list
      list.remove(at: index)
      return list
    }
  }
}
