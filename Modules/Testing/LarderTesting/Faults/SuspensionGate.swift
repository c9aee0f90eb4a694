import Larder
import Synchronization

/// Where operations wait until they are told to go on, and others wait until they do.
final class SuspensionGate: Sendable {
  private enum Kind: Sendable {
    /// An operation that waits to go on.
    case suspended
    /// Somebody who waits until so many operations do.
    case observer(count: Int)
  }

  private struct Waiter: Sendable {
    let id: UInt64
    let kind: Kind
    let operation: StoreOperation?
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var nextID: UInt64 = 0
    var waiters: [Waiter] = []
    // Those that were cancelled before they could be entered above.
    var cancelledEarly: Set<UInt64> = []

    func suspendedCount(of operation: StoreOperation?) -> Int {
      waiters.count { waiter in
        guard case .suspended = waiter.kind else { return false }
        return operation == nil || waiter.operation == operation
      }
    }

    mutating func takeAll(where isTaken: (Waiter) -> Bool) -> [Waiter] {
      let taken = waiters.filter(isTaken)
      waiters.removeAll(where: isTaken)
      return taken
    }

    mutating func takeSatisfiedObservers() -> [Waiter] {
      let state = self
      return takeAll { waiter in
        guard case .observer(let count) = waiter.kind else { return false }
        return state.suspendedCount(of: waiter.operation) >= count
      }
    }
  }

  private let state = Mutex(State())

  /// How many operations wait.
  ///
  /// - Parameter operation: Of which kind; of any where it is `nil`.
  func suspendedCount(of operation: StoreOperation?) -> Int {
    state.withLock { $0.suspendedCount(of: operation) }
  }

  /// Waits for ``resume(_:)``.
  ///
  /// - Parameter operation: What waits.
  /// - Throws: `CancellationError` where the task is cancelled before.
  func suspend(_ operation: StoreOperation) async throws {
    try await wait(.suspended, for: operation)
  }

  /// Waits until operations are suspended.
  ///
  /// - Parameters:
  ///   - count: How many at least.
  ///   - operation: Of which kind; of any where it is `nil`.
  /// - Throws: `CancellationError` where the task is cancelled before.
  func waitForSuspended(_ count: Int, of operation: StoreOperation?) async throws {
    try await wait(.observer(count: count), for: operation)
  }

  /// Lets everything go on that is suspended.
  ///
  /// - Parameter operation: Of which kind; of any where it is `nil`.
  func resume(_ operation: StoreOperation?) {
    let resumed = state.withLock { state in
      state.takeAll { waiter in
        guard case .suspended = waiter.kind else { return false }
        return operation == nil || waiter.operation == operation
      }
    }
    for waiter in resumed { waiter.continuation.resume() }
  }

  private func wait(_ kind: Kind, for operation: StoreOperation?) async throws {
    try Task.checkCancellation()
    let id = state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let satisfied: [Waiter]? = state.withLock { state in
          guard state.cancelledEarly.remove(id) == nil else { return nil }
          state.waiters.append(Waiter(id: id, kind: kind, operation: operation, continuation: continuation))
          return state.takeSatisfiedObservers()
        }
        guard let satisfied else { return continuation.resume(throwing: CancellationError()) }
        for waiter in satisfied { waiter.continuation.resume() }
      }
    } onCancel: {
      cancel(id)
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
