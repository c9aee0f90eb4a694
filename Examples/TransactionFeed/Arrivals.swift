import Foundation
import Larder

/// New transactions of today, which several tasks add at the same time, like the connections of a server.
///
/// Each task waits until its transaction is durable before it adds the next. Transactions that wait at the same time
/// share a commit.
struct Arrivals {
  var accountCount: Int
  var taskCount = 8

  /// Adds transactions until the count is reached or the task is cancelled.
  ///
  /// - Parameters:
  ///   - feed: The feed.
  ///   - count: The number of transactions. Defaults to no limit.
  ///   - acknowledge: A closure that is called with each durable transaction, by several tasks at the same time.
  /// - Throws: The error of the store or of `acknowledge`. Cancellation does not throw.
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
