import Foundation
import Larder
package import Testing

/// Yields to other tasks until a condition holds.
///
/// If it never does, the time limit of the test ends the wait. Use ``waitUntil(atMost:sourceLocation:_:)`` for another process.
package func yieldUntil(_ condition: () async throws -> Bool) async rethrows {
  while try await !condition() { await Task.yield() }
}

/// Waits until a condition holds, with a limit, so a test that fails ends.
///
/// - Parameters:
///   - limit: The longest time to wait. Defaults to five minutes, because only a test that fails waits as long, and a
///     machine under load must not end it.
///   - condition: A closure that returns whether the wait is over.
/// - Throws: ``NeverHappened``; the error that `condition` throws.
package func waitUntil(
  atMost limit: Duration = .seconds(300), sourceLocation: SourceLocation = #_sourceLocation,
  _ condition: () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < end else { throw NeverHappened(sourceLocation: sourceLocation) }
    try await Task.sleep(for: .milliseconds(1))
  }
}

/// Measures a closure until it takes less than a limit, at most five times, and returns the shortest time.
///
/// A busy machine delays single calls. One that waits too long does so each time.
package func shortest(below limit: Duration, _ body: () async throws -> Void) async rethrows -> Duration {
  var shortest = Duration.seconds(Int64.max)
  for _ in 0..<5 where shortest >= limit {
    shortest = min(shortest, try await ContinuousClock().measure { try await body() })
  }
  return shortest
}

/// A test waited in vain.
package struct NeverHappened: Error {
  package let sourceLocation: SourceLocation
}

extension Task where Failure == any Error {
  /// Returns the value, or cancels the task and throws ``NeverHappened`` if the task does not end within five minutes.
  ///
  /// The time limit of a test cancels the test, and not a task that it waits for.
  ///
  /// - Parameter action: A closure that is called again and again until the task ends. Defaults to one that does nothing.
  package func valueInTime(
    sourceLocation: SourceLocation = #_sourceLocation, repeating action: () -> Void = {}
  ) async throws -> Success {
    let isDone = Flag()
    Task<Void, Never> {
      _ = await result
      isDone.set()
    }
    defer { cancel() }
    try await waitUntil(sourceLocation: sourceLocation) {
      action()
      return isDone.isSet
    }
    return try await value
  }
}

/// Repeats a call with a short time limit until a busy machine has not delayed it for longer.
package func untilInTime<Result: Sendable>(_ call: () async throws -> Result) async throws -> Result {
  while true {
    do {
      return try await call()
    } catch let error as StoreError where error.code == .timedOut {
      await Task.yield()
    }
  }
}

/// Runs the tasks that prefer it in the order of their creation, each up to its first suspension.
///
/// So their calls arrive in this order, even if all of them wait.
package final class ArrivalOrder: TaskExecutor {
  private let queue = DispatchQueue(label: "ArrivalOrder")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Runs each job on a thread of its own, so a job that blocks takes no thread of other tests.
package final class OwnThreads: TaskExecutor {
  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Thread.detachNewThread { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// A one-time signal, for threads and closures that cannot wait for a ``Gate``.
package final class Flag: Sendable {
  private let value = Locked(false)

  package init() {}

  package var isSet: Bool { value.withLock { $0 } }

  package func set() { value.withLock { $0 = true } }
}

/// A gate that a test opens.
package final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var lastWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
    var cancelled: Set<Int> = []
  }

  private let state = Locked(State())

  package init() {}

  /// Opens the gate permanently.
  package func open() {
    let waiters = state.withLock { state in
      state.isOpen = true
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  /// Waits until the gate is open.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before that.
  package func wait() async throws {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
        let result: Result<Void, any Error>? = state.withLock { state in
          if state.isOpen { return .success(()) }
          if state.cancelled.remove(number) != nil { return .failure(CancellationError()) }
          state.waiters[number] = waiter
          return nil
        }
        if let result { waiter.resume(with: result) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        let waiter = state.waiters.removeValue(forKey: number)
        if waiter == nil { state.cancelled.insert(number) }
        return waiter
      }
      waiter?.resume(throwing: CancellationError())
    }
  }
}
