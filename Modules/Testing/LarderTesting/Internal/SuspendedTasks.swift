import Larder

/// Tasks that are suspended until they are resumed or cancelled, and callers that wait for such tasks.
///
/// Each suspended task has a tag.
final class SuspendedTasks<Tag: Sendable>: Sendable {
  private struct Waiter: Sendable {
    let id: UInt64
    /// The tag of a suspended task; `nil` if it is a caller that waits for suspended tasks.
    let tag: Tag?
    /// Returns whether the wait is over, for the tags of all suspended tasks.
    let isOver: @Sendable ([Tag]) -> Bool
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var nextID: UInt64 = 0
    var waiters: [Waiter] = []
    /// The IDs of waiters that were cancelled before they were added above.
    var cancelledEarly: Set<UInt64> = []

    mutating func takeAll(where isTaken: (Waiter) -> Bool) -> [Waiter] {
      // The closure is called once for each waiter, because it may return `true` later, when a clock has advanced.
      var taken: [Waiter] = []
      waiters.removeAll { waiter in
        guard isTaken(waiter) else { return false }
        taken.append(waiter)
        return true
      }
      return taken
    }
  }

  private let state = Locked(State())

  /// The tags of the suspended tasks, in the order they were suspended.
  var tags: [Tag] { state.withLock { $0.waiters.compactMap(\.tag) } }

  /// Suspends the current task.
  ///
  /// - Parameters:
  ///   - tag: The tag of the task.
  ///   - isOver: A closure that returns whether there is nothing to wait for. Defaults to one that returns `false`.
  /// - Throws: `CancellationError` if the task is cancelled first.
  func suspend(_ tag: Tag, unless isOver: @escaping @Sendable () -> Bool = { false }) async throws {
    try await wait(tag) { _ in isOver() }
  }

  /// Waits until the tags of the suspended tasks satisfy a condition.
  ///
  /// - Throws: `CancellationError` if the task is cancelled first.
  func wait(until isSatisfied: @escaping @Sendable ([Tag]) -> Bool) async throws {
    try await wait(nil, isSatisfied)
  }

  /// Removes all waiters without resuming them, and returns what keeps them.
  func forgetAll() -> Any { state.withLock { $0.takeAll { _ in true } } }

  /// Resumes all suspended tasks whose tags a closure selects, in the order they were suspended.
  func resume(where isResumed: (Tag) -> Bool) {
    let resumed = state.withLock { $0.takeAll { $0.tag.map(isResumed) ?? false } }
    for waiter in resumed { waiter.continuation.resume() }
  }

  private func wait(_ tag: Tag?, _ isOver: @escaping @Sendable ([Tag]) -> Bool) async throws {
    try Task.checkCancellation()
    let id = state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let over: [Waiter]? = state.withLock { state in
          guard state.cancelledEarly.remove(id) == nil else { return nil }
          state.waiters.append(Waiter(id: id, tag: tag, isOver: isOver, continuation: continuation))
          let tags = state.waiters.compactMap(\.tag)
          // Other suspended tasks are resumed by `resume(where:)`, in its order.
          return state.takeAll { ($0.tag == nil || $0.id == id) && $0.isOver(tags) }
        }
        guard let over else { return continuation.resume(throwing: CancellationError()) }
        for waiter in over { waiter.continuation.resume() }
      }
    } onCancel: {
      // Code under test cancels its timers without knowing of a trial, and no other work may run in the middle of this.
      guard let run = ScheduledRun.current else { return cancel(id) }
      run.uninterrupted { cancel(id) }
    }
  }

  private func cancel(_ id: UInt64) {
    let cancelled = state.withLock { state in
      let cancelled = state.takeAll { $0.id == id }
      if cancelled.isEmpty { state.cancelledEarly.insert(id) }
      return cancelled
    }
    for waiter in cancelled { waiter.continuation.resume(throwing: CancellationError()) }
  }
}
