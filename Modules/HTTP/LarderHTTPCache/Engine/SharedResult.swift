#if HTTPCache
import Larder

/// A time limit for waiting.
struct TimeLimit: Sendable {
  /// The longest time of one wait.
  let duration: Duration

  fileprivate let clock: any Clock<Duration>
  private let time: ElapsedTime

  /// Creates a time limit.
  ///
  /// - Parameters:
  ///   - duration: The longest time of one wait.
  ///   - clock: The clock that measures it.
  init(_ duration: Duration, clock: any Clock<Duration>) {
    self.duration = duration
    self.clock = clock
    time = ElapsedTime(by: clock)
  }

  private init(_ duration: Duration, _ other: TimeLimit) {
    (self.duration, clock, time) = (duration, other.clock, other.time)
  }

  /// The current time, from an arbitrary start.
  var now: Duration { time.duration }

  /// Returns the limit of another duration, with the same clock.
  func with(_ duration: Duration) -> TimeLimit { TimeLimit(duration, self) }

  /// Returns the limit for a wait that must end at a time of ``now``.
  func until(_ deadline: Duration) -> TimeLimit { with(max(.zero, deadline - now)) }
}

/// A result that any number of callers wait for, each of them with a time limit.
final class SharedResult<Value: Sendable>: Sendable {
  /// The error of a caller whose time limit has passed.
  struct TimedOut: Error {}

  private enum Waiter {
    /// The caller is about to be suspended.
    case coming
    case suspended(CheckedContinuation<Value, any Error>)
    /// The caller must not be suspended any more.
    case failed(any Error)
  }

  private struct State {
    var nextID: UInt64 = 0
    var result: Result<Value, any Error>?
    var waiters: [UInt64: Waiter] = [:]
  }

  private let state = Locked(State())

  /// The result, or `nil` if there isn't one yet.
  var result: Result<Value, any Error>? { state.withLock { $0.result } }

  /// The number of callers that wait.
  var waiterCount: Int { state.withLock { $0.waiters.count } }

  /// Sets the result and passes it to all waiters.
  ///
  /// A later result is ignored.
  func finish(_ result: Result<Value, any Error>) {
    let waiters = state.withLock { state -> [UInt64: Waiter] in
      guard state.result == nil else { return [:] }
      state.result = result
      defer { state.waiters = [:] }
      return state.waiters
    }
    for case .suspended(let continuation) in waiters.values { continuation.resume(with: result) }
  }

  /// Waits for the result.
  ///
  /// - Parameter limit: The time limit, or `nil`.
  /// - Throws: The error of the result; ``TimedOut`` when the limit has passed; `CancellationError` if the task is
  ///   cancelled before there is a result.
  func value(within limit: TimeLimit? = nil) async throws -> Value {
    let (result, id) = state.withLock { state -> (Result<Value, any Error>?, UInt64) in
      guard state.result == nil else { return (state.result, 0) }
      state.nextID += 1
      state.waiters[state.nextID] = .coming
      return (nil, state.nextID)
    }
    if let result { return try result.get() }
    let timer = limit.map { startTimer(id, $0) }
    defer { timer?.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { suspend($0, as: id) }
    } onCancel: {
      fail(id, with: CancellationError())
    }
  }

  private func startTimer(_ id: UInt64, _ limit: TimeLimit) -> Task<Void, Never> {
    let end = limit.now + limit.duration
    return Task { [weak self] in
      do {
        // The task may begin late.
        try await limit.clock.sleep(for: max(.zero, end - limit.now))
      } catch {
        // The wait has ended.
        return
      }
      self?.fail(id, with: TimedOut())
    }
  }

  private func suspend(_ continuation: CheckedContinuation<Value, any Error>, as id: UInt64) {
    let result = state.withLock { state -> Result<Value, any Error>? in
      if let result = state.result { return result }
      if case .failed(let error) = state.waiters[id] {
        state.waiters[id] = nil
        return .failure(error)
      }
      state.waiters[id] = .suspended(continuation)
      return nil
    }
    if let result { continuation.resume(with: result) }
  }

  private func fail(_ id: UInt64, with error: any Error) {
    let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
      switch state.waiters[id] {
      case .suspended(let continuation):
        state.waiters[id] = nil
        return continuation
      case .coming: state.waiters[id] = .failed(error)
      case .failed, nil: break
      }
      return nil
    }
    continuation?.resume(throwing: error)
  }
}

extension SharedResult where Value == Void {
  /// Sets the result, so all waiters continue.
  func finish() {
    finish(.success(()))
  }
}
#endif
