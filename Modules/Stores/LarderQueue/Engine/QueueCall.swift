import Larder
import Synchronization

/// An operation on a queue, from its arrival until its caller resumes.
final class QueueCall: Sendable {
  /// The kinds of work that a call does.
  enum Weight: Sendable {
    /// The call only reads memory.
    case looks
    /// The call changes memory, and its changes are written.
    case writes
    /// The call may wait for the disk, or runs the user's code.
    case blocks
    /// The call works on the files themselves, so no other changes may wait to be written.
    case alone
  }

  /// The result of running a call.
  enum Verdict: Sendable {
    case done
    /// The call waits for items to receive.
    case waitsForItems
  }

  private enum State {
    case queued(UnsafeContinuation<Result<Void, any Error>, Never>?)
    case running(UnsafeContinuation<Result<Void, any Error>, Never>?, isCancelled: Bool)
    case over(Result<Void, any Error>)
  }

  let operation: StoreOperation
  let weight: Weight
  /// The time of arrival, in microseconds.
  ///
  /// Whether a lease has ended is judged by this time, not by the time at which the call is served.
  let arrival: Int64
  /// Whether the call may need room.
  let needsRoom: Bool
  /// Whether the call waits if there is no room.
  let waitsForRoom: Bool
  /// The work of the call.
  ///
  /// If it throws, it has changed nothing.
  let body: @Sendable (inout QueueCore) throws -> Verdict

  private let state = Mutex(State.queued(nil))

  init(
    _ operation: StoreOperation, _ weight: Weight, at arrival: Int64, needsRoom: Bool = false,
    waitsForRoom: Bool = false, body: @escaping @Sendable (inout QueueCore) throws -> Verdict
  ) {
    self.operation = operation
    self.weight = weight
    self.arrival = arrival
    self.needsRoom = needsRoom
    self.waitsForRoom = waitsForRoom
    self.body = body
  }

  /// Whether the call has ended.
  var isOver: Bool { ending != nil }

  /// The result of the call; `nil` before it has ended.
  var ending: Result<Void, any Error>? {
    state.withLock { state in
      if case .over(let result) = state { result } else { nil }
    }
  }

  /// Waits until the call has ended.
  func wait() async throws {
    let result = await withUnsafeContinuation { continuation in
      let result = state.withLock { state -> Result<Void, any Error>? in
        switch state {
        case .queued:
          state = .queued(continuation)
          return nil
        case .running(_, let isCancelled):
          state = .running(continuation, isCancelled: isCancelled)
          return nil
        case .over(let result): return result
        }
      }
      if let result { continuation.resume(returning: result) }
    }
    try result.get()
  }

  /// Marks the call as running.
  ///
  /// - Returns: Whether the call must run; `false` if it was cancelled.
  func begin() -> Bool {
    state.withLock { state in
      switch state {
      case .queued(let continuation):
        state = .running(continuation, isCancelled: false)
        return true
      case .running: return true
      case .over: return false
      }
    }
  }

  /// Marks the call as waiting to run again.
  func park() {
    let isCancelled = state.withLock { state in
      guard case .running(let continuation, let isCancelled) = state else { return false }
      state = .queued(continuation)
      return isCancelled
    }
    if isCancelled { end(.failure(CancellationError())) }
  }

  /// Ends the call and resumes its caller.
  func end(_ result: Result<Void, any Error>) {
    let continuation = state.withLock { state -> UnsafeContinuation<Result<Void, any Error>, Never>? in
      switch state {
      case .queued(let continuation), .running(let continuation, _):
        state = .over(result)
        return continuation
      case .over: return nil
      }
    }
    continuation?.resume(returning: result)
  }

  /// Ends the call with `CancellationError`.
  ///
  /// If the call is running, it ends so only when it would have to wait.
  func cancel() {
    let isQueued = state.withLock { state in
      switch state {
      case .queued: return true
      case .running(let continuation, _):
        state = .running(continuation, isCancelled: true)
        return false
      case .over: return false
      }
    }
    if isQueued { end(.failure(CancellationError())) }
  }
}

/// A box that carries the result of a call from the thread that runs it to its caller.
final class ResultBox<Result: Sendable>: Sendable {
  private let result = Mutex<Result?>(nil)

  /// Sets the result, replacing any earlier one.
  func set(_ new: Result) {
    let displaced = result.withLock { result in
      defer { result = new }
      return result
    }
    withExtendedLifetime(displaced) {}
  }

  /// Removes and returns the result.
  func take() -> Result? {
    result.withLock { result in
      defer { result = nil }
      return result
    }
  }
}
