import Synchronization

/// A clock whose time moves only when it is told to, for testing what waits without waiting.
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task { try await clock.sleep(for: .seconds(60)) }
/// try await clock.waitForSleepers(1)
/// clock.advance(by: .seconds(60))
/// try await task.value
/// ```
public final class ManualClock: Clock {
  private struct Sleeper: Sendable {
    let id: UInt64
    let deadline: Instant
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct Observer: Sendable {
    let id: UInt64
    let count: Int
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var now: Instant
    var nextID: UInt64 = 0
    // By deadline; those with the same one in the order in which they came.
    var sleepers: [Sleeper] = []
    var observers: [Observer] = []
    // Those that were cancelled before they could be entered above.
    var cancelledEarly: Set<UInt64> = []
  }

  private let state: Mutex<State>

  /// Makes a clock.
  ///
  /// - Parameter now: What it shows at first; the zero of its time unless given.
  public init(now: Instant = Instant()) {
    state = Mutex(State(now: now))
  }

  /// What the clock shows.
  public var now: Instant { state.withLock { $0.now } }

  /// One attosecond, the smallest `Duration`.
  public var minimumResolution: Duration { Duration(secondsComponent: 0, attosecondsComponent: 1) }

  /// How many tasks are waiting for a later time.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// Moves the time on, and wakes whoever waits for a time up to the new one, the earliest deadline first.
  ///
  /// It moves in one step: all that wake see the new time. Whoever then sleeps until a time already past does not wait.
  ///
  /// - Parameter duration: How far; a negative one moves the time back, and wakes no one.
  public func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now = state.now.advanced(by: duration)
      let count = state.sleepers.prefix { $0.deadline <= state.now }.count
      defer { state.sleepers.removeFirst(count) }
      return state.sleepers.prefix(count)
    }
    for sleeper in due {
      sleeper.continuation.resume()
    }
  }

  /// Waits until the clock shows a time.
  ///
  /// - Parameters:
  ///   - deadline: The time.
  ///   - tolerance: Has no effect: a task wakes as soon as its time has come.
  /// - Throws: `CancellationError` where the task is cancelled before.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try await suspend { state, id, continuation in
      guard deadline > state.now else { return false }
      let place = state.sleepers.firstIndex { $0.deadline > deadline } ?? state.sleepers.endIndex
      state.sleepers.insert(Sleeper(id: id, deadline: deadline, continuation: continuation), at: place)
      return true
    }
  }

  /// Waits until at least so many tasks sleep, so that advancing the time is sure to find them.
  ///
  /// - Parameter count: How many.
  /// - Throws: `CancellationError` where the task is cancelled before.
  public func waitForSleepers(_ count: Int) async throws {
    try await suspend { state, id, continuation in
      guard state.sleepers.count < count else { return false }
      state.observers.append(Observer(id: id, count: count, continuation: continuation))
      return true
    }
  }

  /// Suspends the task.
  ///
  /// - Parameter enter: Keeps the continuation somewhere in the state, or returns `false` where there is nothing to wait for.
  private func suspend(
    _ enter: (inout sending State, UInt64, CheckedContinuation<Void, any Error>) -> Bool
  ) async throws {
    try Task.checkCancellation()
    let id = state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        var isCancelled = false
        let (waits, satisfied) = state.withLock { state in
          isCancelled = state.cancelledEarly.remove(id) != nil
          let waits = !isCancelled && enter(&state, id, continuation)
          return (waits, ManualClock.takeSatisfiedObservers(of: &state))
        }
        for observer in satisfied {
          observer.continuation.resume()
        }
        if isCancelled {
          continuation.resume(throwing: CancellationError())
        } else if !waits {
          continuation.resume()
        }
      }
    } onCancel: {
      cancel(id)
    }
  }

  private static func takeSatisfiedObservers(of state: inout State) -> [Observer] {
    let count = state.sleepers.count
    let satisfied = state.observers.filter { $0.count <= count }
    state.observers.removeAll { $0.count <= count }
    return satisfied
  }

  private func cancel(_ id: UInt64) {
    let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
      if let index = state.sleepers.firstIndex(where: { $0.id == id }) {
        return state.sleepers.remove(at: index).continuation
      }
      if let index = state.observers.firstIndex(where: { $0.id == id }) {
        return state.observers.remove(at: index).continuation
      }
      state.cancelledEarly.insert(id)
      return nil
    }
    continuation?.resume(throwing: CancellationError())
  }
}
