import Dispatch
import Foundation
import Synchronization

/// A flag that tasks share.
final class Flag: Sendable {
  private let value = Atomic(false)
  private let raising = DispatchSemaphore(value: 0)

  var isRaised: Bool { value.load(ordering: .sequentiallyConsistent) }

  func raise() {
    value.store(true, ordering: .sequentiallyConsistent)
    raising.signal()
  }

  /// Returns whether the flag is raised within a duration.
  ///
  /// This method blocks the thread, for use in the middle of an operation that must not be suspended.
  func isRaised(within time: Duration) -> Bool {
    guard !isRaised, raising.wait(timeout: .now() + time / .seconds(1)) == .success else { return isRaised }
    // Wakes the next waiter.
    raising.signal()
    return true
  }
}

/// A counter that tasks share.
final class Tally: Sendable {
  private let value = Atomic(0)

  var count: Int { value.load(ordering: .sequentiallyConsistent) }

  /// Increments the counter.
  ///
  /// - Returns: The count before the increment.
  @discardableResult
  func add() -> Int {
    value.add(1, ordering: .sequentiallyConsistent).oldValue
  }
}

/// An executor that runs each job on a new thread outside the cooperative pool.
///
/// Tasks start even if other work blocks the pool. A dispatch queue would not do, because its threads are limited.
final class SeparateThreads: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Thread.detachNewThread {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}

/// Runs operations concurrently.
///
/// - Parameters:
///   - count: The number of operations.
///   - operation: A closure that runs the operation with an index.
func concurrently(
  _ count: Int, _ operation: @escaping @Sendable (_ index: Int) async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    for index in 0..<count {
      group.addTask { try await operation(index) }
    }
    try await group.waitForAll()
  }
}

/// Runs an operation while three readers repeat another one, at least once each.
func run(
  _ operation: @escaping @Sendable () async throws -> Void,
  besideReaders read: @escaping @Sendable (_ reader: Int) async throws -> Void
) async throws {
  let isDone = Flag()
  try await concurrently(4) { index in
    if index == 3 {
      defer { isDone.raise() }
      return try await operation()
    }
    repeat {
      try await read(index)
      await Task.yield()
    } while !isDone.isRaised
  }
}

/// Runs an operation in a task that is already cancelled.
func inCancelledTask<Result: Sendable>(
  _ operation: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await Task {
    withUnsafeCurrentTask { $0?.cancel() }
    return try await operation()
  }.value
}
