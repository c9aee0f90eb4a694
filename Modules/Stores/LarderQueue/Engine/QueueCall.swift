import Larder

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

  private struct State {
    var isRunning = false
    var isCancelled = false
    var hasWaited = false
    var result: Result<Void, any Error>?
    var continuation: UnsafeContinuation<Result<Void, any Error>, Never>?
  }

  let operation: StoreOperation
  let weight: Weight
  /// The time of arrival, in microseconds.
  ///
  /// This time, not the one when the call is served, decides whether a lease has ended.
  let arrival: Int64
  /// A Boolean value that indicates whether the call may need room.
  let needsRoom: Bool
  /// A Boolean value that indicates whether the call waits if there is no room.
  let waitsForRoom: Bool
  /// The work of the call.
  ///
  /// If it throws, it has changed nothing.
  let body: @Sendable (inout QueueCore) throws -> Void

  private let state = Locked(State())

  init(
    _ operation: StoreOperation, _ weight: Weight, at arrival: Int64, needsRoom: Bool = false,
    waitsForRoom: Bool = false, body: @escaping @Sendable (inout QueueCore) throws -> Void
  ) {
    self.operation = operation
    self.weight = weight
    self.arrival = arrival
    self.needsRoom = needsRoom
    self.waitsForRoom = waitsForRoom
    self.body = body
  }

  /// The result of the call; `nil` before it has ended.
  var result: Result<Void, any Error>? { state.withLock { $0.result } }

  /// A Boolean value that indicates whether the call has run before, and had to wait.
  var hasWaited: Bool { state.withLock { $0.hasWaited } }

  /// Waits until the call has ended.
  func wait() async throws {
    let result = await withUnsafeContinuation { continuation in
      let result = state.withLock { state in
        if state.result == nil { state.continuation = continuation }
        return state.result
      }
      if let result { continuation.resume(returning: result) }
    }
    try result.get()
  }

  /// Marks the call as running.
  ///
  /// - Returns: A Boolean value that indicates whether the call must run; `false` if it was cancelled.
  func begin() -> Bool {
    state.withLock { state in
      state.isRunning = state.result == nil
      return state.isRunning
    }
  }

  /// Marks the call as waiting to run again, or ends it if it was cancelled while it ran.
  ///
  /// - Returns: A Boolean value that indicates whether it waits.
  func park() -> Bool {
    let isCancelled = state.withLock { state in
      (state.isRunning, state.hasWaited) = (false, true)
      return state.isCancelled
    }
    if isCancelled { end(.failure(CancellationError())) }
    return !isCancelled
  }

  /// Ends the call and resumes its caller.
  func end(_ result: Result<Void, any Error>) {
    let continuation = state.withLock { state -> UnsafeContinuation<Result<Void, any Error>, Never>? in
      guard state.result == nil else { return nil }
      state.result = result
      return state.continuation.take()
    }
    continuation?.resume(returning: result)
  }

  /// Ends the call with `CancellationError`.
  ///
  /// If the call is running, it ends so only when it would have to wait.
  func cancel() {
    let isRunning = state.withLock { state in
      state.isCancelled = true
      return state.isRunning
    }
    if !isRunning { end(.failure(CancellationError())) }
  }
}
