#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import Synchronization

/// A clock whose time moves only when you advance it, so that tests of delays need not wait.
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
    // Ordered by deadline, and by arrival among equal deadlines.
    var sleepers: [Sleeper] = []
    var observers: [Observer] = []
    // The IDs of waiters that were cancelled before they were added above.
    var cancelledEarly: Set<UInt64> = []
  }

  private let state: Mutex<State>

  /// Creates a clock.
  ///
  /// - Parameter now: The initial time; defaults to the clock's zero.
  public init(now: Instant = Instant()) {
    state = Mutex(State(now: now))
  }

  /// The current time of the clock.
  public var now: Instant { state.withLock { $0.now } }

  /// One attosecond, the smallest `Duration`.
  public var minimumResolution: Duration { Duration(secondsComponent: 0, attosecondsComponent: 1) }

  /// The number of tasks that are waiting for a later time.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// Advances the time and wakes the tasks whose deadlines have passed, the earliest deadline first.
  ///
  /// The time moves in one step, so all the tasks that wake see the new time. A task that then sleeps until a time in
  /// the past does not wait.
  ///
  /// - Parameter duration: The duration to advance by. A negative duration moves the time back and wakes no task.
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

  /// Waits until the clock reaches a deadline.
  ///
  /// - Parameters:
  ///   - deadline: The time to wait for.
  ///   - tolerance: Ignored. A task wakes as soon as its deadline is reached.
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try await suspend { state, id, continuation in
      guard deadline > state.now else { return false }
      let place = state.sleepers.firstIndex { $0.deadline > deadline } ?? state.sleepers.endIndex
      state.sleepers.insert(Sleeper(id: id, deadline: deadline, continuation: continuation), at: place)
      return true
    }
  }

  /// Waits until at least `count` tasks are sleeping, so that a following ``advance(by:)`` is sure to find them.
  ///
  /// - Parameter count: The minimum number of sleeping tasks.
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func waitForSleepers(_ count: Int) async throws {
    try await suspend { state, id, continuation in
      guard state.sleepers.count < count else { return false }
      state.observers.append(Observer(id: id, count: count, continuation: continuation))
      return true
    }
  }

  /// Suspends the task until its continuation is resumed.
  ///
  /// - Parameter enter: A closure that stores the continuation in the state. It returns `false` if there is nothing to
  ///   wait for.
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

extension ManualClock {
  /// An instant of a ``ManualClock``.
  public struct Instant: InstantProtocol {
    /// The duration since the clock's zero.
    public let offset: Duration

    /// Creates an instant.
    ///
    /// - Parameter offset: The duration since the clock's zero; defaults to zero.
    public init(offset: Duration = .zero) {
      self.offset = offset
    }

    /// Returns the instant that is `duration` later.
    public func advanced(by duration: Duration) -> Instant {
      Instant(offset: offset + duration)
    }

    /// Returns the duration from this instant to another.
    public func duration(to other: Instant) -> Duration {
      other.offset - offset
    }

    /// Returns whether one instant is before another.
    public static func < (left: Instant, right: Instant) -> Bool {
      left.offset < right.offset
    }
  }
}

extension ManualClock {
  /// The clock's time as a date; the clock's zero is the first second of 2026 in UTC.
  ///
  /// Pass `{ clock.date }` to code that takes a closure for the current date.
  public var date: Date {
    let (seconds, attoseconds) = now.offset.components
    return Date(timeIntervalSince1970: 1_767_225_600 + Double(seconds) + Double(attoseconds) / 1e18)
  }
}
