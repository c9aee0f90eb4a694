import Dispatch
import Foundation
import Synchronization

/// A Boolean value that tasks share.
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

/// Runs an operation in a task that is already cancelled.
func inCancelledTask<Result: Sendable>(
  _ operation: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await Task {
    withUnsafeCurrentTask { $0?.cancel() }
    return try await operation()
  }.value
}
