import Foundation
import Larder

/// New transactions of today, which several tasks add at once, as the connections of a server would.
///
/// Each task waits for one to be there for good before it adds the next; what waits at the same time shares a commit.
struct Arrivals {
  var accountCount: Int
  var taskCount = 8

  /// Adds transactions until so many are there or the task is cancelled.
  ///
  /// - Parameters:
  ///   - feed: Where they go.
  ///   - count: How many; without end unless given.
  ///   - acknowledge: Gets each transaction once it is there for good, from several tasks at once.
  /// - Throws: What the store throws, and `acknowledge`; nothing for a cancellation.
  func run(
    into feed: Feed<some DataStore<Transaction>>, count: Int = .max,
    acknowledge: @escaping @Sendable (Transaction) throws -> Void = { _ in }
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<taskCount {
        let share = count / taskCount + (task < count % taskCount ? 1 : 0)
        group.addTask { try await add(share, into: feed, acknowledge: acknowledge) }
      }
      try await group.waitForAll()
    }
  }

  private func add(
    _ count: Int, into feed: Feed<some DataStore<Transaction>>,
    acknowledge: @Sendable (Transaction) throws -> Void
  ) async throws {
    var maker = TransactionMaker(seed: .random(in: 0 ... .max))
    for _ in 0..<count {
      let transaction = maker.transaction(ofAccount: .random(in: 1...accountCount), on: .now)
      do {
        try await feed.add(transaction)
      } catch is CancellationError {
        return
      }
      try acknowledge(transaction)
    }
  }
}
