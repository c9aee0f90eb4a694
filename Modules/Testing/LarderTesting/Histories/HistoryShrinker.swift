import Larder

/// Shortens a failing history by removing steps and parts of steps while it still fails.
///
/// - Parameters:
///   - history: A failing history.
///   - failure: The failure of the history.
///   - attempts: The maximum number of other histories to try.
///   - run: A closure that runs a history and returns its failure, or `nil` if it succeeds.
/// - Returns: The failure of the shortened history.
/// - Throws: Any error from `run`.
func shrink(
  _ history: [HistoryStep], _ failure: TrialFailure, attempts: Int,
  running run: ([HistoryStep]) async throws -> TrialFailure?
) async throws -> TrialFailure {
  var (history, failure, attempts) = (history, failure, attempts)
  /// Replaces the history by the first simpler one that fails.
  func simplify() async throws -> Bool {
    for candidate in simplerHistories(than: history) where attempts > 0 {
      attempts -= 1
      guard let found = try await run(candidate) else { continue }
      (history, failure) = (candidate, found)
      return true
    }
    return false
  }
  while try await simplify() {}
  return failure
}

/// Returns shorter histories, the shortest first, and then those in which one step is simpler.
private func simplerHistories(than history: [HistoryStep]) -> [[HistoryStep]] {
  // Steps are removed from the end first, because steps after the failure never matter.
  let lengths = sequence(first: (history.count + 1) / 2) { $0 / 2 }.prefix { $0 > 0 }
  let shorter = lengths.flatMap { length in
    stride(from: history.count - length, through: 0, by: -length).map { start in
      Array(history[..<start] + history[(start + length)...])
    }
  }
  let simpler = history.indices.flatMap { index in
    history[index].simplerSteps.map { step in Array(history[..<index] + [step] + history[(index + 1)...]) }
  }
  return shorter + simpler
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
