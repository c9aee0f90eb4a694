/// A lock that several writers share or that one writer holds exclusively, in the order of their arrival.
///
/// A task that waits for it suspends, so it may be held across calls of a store:
///
/// ```swift
/// let gate = WriteGate()
/// try await gate.withAccess(.exclusive) { try await rewriteEverything() }
/// ```
///
/// A task that holds it must not wait for it again.
public final class WriteGate: Sendable {
  /// The two ways to hold the lock.
  public enum Access: Sendable {
    /// Together with other writers.
    case shared
    /// Alone.
    case exclusive
  }

  private struct Waiter: Sendable {
    let number: Int
    let access: Access
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State: Sendable {
    /// The number of writers that share the lock, or -1 if one holds it exclusively.
    var holders = 0
    var waiters: [Waiter] = []
    var nextNumber = 0

    mutating func take(_ access: Access) -> Bool {
      switch access {
      case .shared where holders >= 0: holders += 1
      case .exclusive where holders == 0: holders = -1
      default: return false
      }
      return true
    }

    /// Gives the lock to the first waiters, as many as can share it, and removes them from the wait queue.
    mutating func takeNext() -> [Waiter] {
      let waiting = waiters.firstIndex { !take($0.access) } ?? waiters.count
      defer { waiters.removeSubrange(..<waiting) }
      return Array(waiters[..<waiting])
    }
  }

  private let state = Locked(State())

  /// Creates a lock that no writer holds.
  public init() {}

  /// Waits for the lock, which ``leave()`` releases.
  ///
  /// - Parameter access: The access: shared with other writers, or exclusive.
  /// - Throws: `CancellationError` if the task is cancelled before it has the lock.
  public func enter(_ access: Access) async throws {
    let number = state.withLock { state in
      defer { state.nextNumber += 1 }
      return state.nextNumber
    }
    let hasEntered = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let hasEntered: Bool? = state.withLock { state in
          if Task.isCancelled { return false }
          if state.waiters.isEmpty, state.take(access) { return true }
          state.waiters.append(Waiter(number: number, access: access, continuation: continuation))
          return nil
        }
        if let hasEntered { continuation.resume(returning: hasEntered) }
      }
    } onCancel: {
      let (left, next) = state.withLock { state -> (Waiter?, [Waiter]) in
        guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return (nil, []) }
        let waiter = state.waiters.remove(at: index)
        // The waiters behind it may be able to share the lock.
        return (waiter, state.takeNext())
      }
      left?.continuation.resume(returning: false)
      for waiter in next { waiter.continuation.resume(returning: true) }
    }
    if !hasEntered { throw CancellationError() }
  }

  /// Takes the lock if it is free and no writer waits for it.
  ///
  /// - Parameter access: Whether other writers may hold it at the same time.
  /// - Returns: Whether the lock was taken; then ``leave()`` releases it.
  public func tryEnter(_ access: Access) -> Bool {
    state.withLock { state in state.waiters.isEmpty && state.take(access) }
  }

  /// Releases the lock.
  public func leave() {
    let next = state.withLock { state in
      precondition(state.holders != 0, "a lock without a holder cannot be released")
      state.holders = state.holders < 0 ? 0 : state.holders - 1
      return state.takeNext()
    }
    for waiter in next { waiter.continuation.resume(returning: true) }
  }

  /// Runs a closure while holding the lock.
  ///
  /// - Parameters:
  ///   - access: The access: shared with other writers, or exclusive.
  ///   - body: The closure.
  /// - Returns: The result of the closure.
  /// - Throws: `CancellationError` if the task is cancelled before it has the lock; the error of `body`.
  public func withAccess<Result>(_ access: Access, _ body: () async throws -> Result) async throws -> Result {
    try await enter(access)
    defer { leave() }
    return try await body()
  }
}
