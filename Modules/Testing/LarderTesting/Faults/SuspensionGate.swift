import Larder
import Synchronization

/// A gate that suspends operations until they are resumed, and lets tests wait for suspended operations.
final class SuspensionGate: Sendable {
  private enum Kind: Sendable {
    /// An operation that waits to be resumed.
    case suspended
    /// A caller that waits until `count` operations are suspended.
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
    // The IDs of waiters that were cancelled before they were added above.
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

  /// Returns the number of suspended operations.
  ///
  /// - Parameter operation: The kind of operation, or `nil` for any.
  func suspendedCount(of operation: StoreOperation?) -> Int {
    state.withLock { $0.suspendedCount(of: operation) }
  }

  /// Suspends an operation until ``resume(_:)`` is called.
  ///
  /// - Parameter operation: The kind of operation.
  /// - Throws: `CancellationError` if the task is cancelled first.
  func suspend(_ operation: StoreOperation) async throws {
    try await wait(.suspended, for: operation)
  }

  /// Waits until operations are suspended.
  ///
  /// - Parameters:
  ///   - count: The minimum number of suspended operations.
  ///   - operation: The kind of operation, or `nil` for any.
  /// - Throws: `CancellationError` if the task is cancelled first.
  func waitForSuspended(_ count: Int, of operation: StoreOperation?) async throws {
    try await wait(.observer(count: count), for: operation)
  }

  /// Resumes all suspended operations.
  ///
  /// - Parameter operation: The kind of operation, or `nil` for any.
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
