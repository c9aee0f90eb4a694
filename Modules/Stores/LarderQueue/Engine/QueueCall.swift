import Larder
import Synchronization

/// Something that is asked of a queue, from its coming until its caller is told.
final class QueueCall: Sendable {
  /// The kinds of work a call may do.
  enum Weight: Sendable {
    /// It only looks at what is in memory.
    case looks
    /// It changes what is in memory, and has it written.
    case writes
    /// It may wait for the disk, or runs code of the user's.
    case blocks
    /// It works on the files themselves, so that nothing may be about to be written.
    case alone
  }

  /// The result of running a call.
  enum Verdict: Sendable {
    case done
    /// It waits for items to receive.
    case waitsForItems
  }

  private enum State {
    case queued(UnsafeContinuation<Result<Void, any Error>, Never>?)
    case running(UnsafeContinuation<Result<Void, any Error>, Never>?, isCancelled: Bool)
    case over(Result<Void, any Error>)
  }

  let operation: StoreOperation
  let weight: Weight
  /// When it came, in microseconds: whether a lease has ended is judged by that, not by when there is time for the call.
  let arrival: Int64
  /// Whether it may take room.
  let needsRoom: Bool
  /// Whether it waits where there is no room.
  let waitsForRoom: Bool
  /// Does it; what it throws has changed nothing.
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

  /// Whether it has ended.
  var isOver: Bool { ending != nil }

  /// How the call has ended, where it is over.
  var ending: Result<Void, any Error>? {
    state.withLock { state in
      if case .over(let result) = state { result } else { nil }
    }
  }

  /// Waits until the call is over.
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

  /// Notes that the call runs now.
  ///
  /// - Returns: Whether it is to run: not where it was cancelled.
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

  /// Notes that the call has to wait, and runs again some time.
  func park() {
    let isCancelled = state.withLock { state in
      guard case .running(let continuation, let isCancelled) = state else { return false }
      state = .queued(continuation)
      return isCancelled
    }
    if isCancelled { end(.failure(CancellationError())) }
  }

  /// Ends the call, and tells its caller.
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

  /// Ends the call with `CancellationError`, unless it runs; where it has to wait then, it ends so.
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
