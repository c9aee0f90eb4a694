import Dispatch

/// Threads outside the pool that Swift's tasks share, which may block.
enum Threads {
  /// Runs a closure on several threads at once, and waits for all of them.
  ///
  /// - Parameter body: Gets the number of its thread.
  /// - Throws: What the first of them threw.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        group.addTask {
          try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // A queue of its own: the global ones have no more threads than tasks do, and tasks would wait.
            DispatchQueue(label: "Threads \(number)").async {
              continuation.resume(with: Result { try body(number) })
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
