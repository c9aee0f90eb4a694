public import Foundation
public import Larder

/// A clock whose time moves only when you advance it, so tests of delays need not wait.
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task { try await clock.sleep(for: .seconds(60)) }
/// try await clock.waitForSleepers(1)
/// clock.advance(by: .seconds(60))
/// try await task.value
/// ```
public final class ManualClock: Clock {
  private let time: Locked<Instant>
  /// The sleeping tasks with their deadlines.
  private let sleepers = SuspendedTasks<Instant>()

  /// Creates a clock.
  ///
  /// - Parameter now: The initial time. Defaults to the clock's zero.
  public init(now: Instant = Instant()) {
    time = Locked(now)
  }

  /// The current time of the clock.
  public var now: Instant { time.withLock { $0 } }

  /// One attosecond, the smallest `Duration`.
  public var minimumResolution: Duration { Duration(secondsComponent: 0, attosecondsComponent: 1) }

  /// The number of tasks that are waiting for a later time.
  public var sleeperCount: Int { sleepers.tags.count }

  /// Removes the sleeping tasks without resuming them, and returns what keeps them.
  func forgetSleepers() -> Any { sleepers.forgetAll() }

  /// The earliest deadline of a sleeping task, or `nil` if no task sleeps.
  var nextDeadline: Instant? { sleepers.tags.min() }

  /// Advances the time and wakes the tasks whose deadlines have passed, the earliest deadline first.
  ///
  /// The time moves in one step, so all the tasks that wake see the new time. A task that then sleeps until a time in
  /// the past does not wait.
  ///
  /// - Parameter duration: The duration to advance by. A negative duration moves the time back and wakes no task.
  public func advance(by duration: Duration) {
    let now = time.withLock { now in
      now = now.advanced(by: duration)
      return now
    }
    // Tasks with equal deadlines wake in the order they began to sleep.
    for deadline in Set(sleepers.tags.filter { $0 <= now }).sorted() { sleepers.resume { $0 == deadline } }
  }

  /// Waits until the clock reaches a deadline.
  ///
  /// - Parameters:
  ///   - deadline: The time to wait for.
  ///   - tolerance: Ignored. A task wakes as soon as its deadline is reached.
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try await sleepers.suspend(deadline) { self.now >= deadline }
  }

  /// Waits until at least `count` tasks are sleeping, so a following ``advance(by:)`` is sure to find them.
  ///
  /// ```swift
  /// try await clock.waitForSleepers(1)  // the task under test sleeps
  /// clock.advance(by: .seconds(60))
  /// ```
  ///
  /// - Parameter count: The minimum number of sleeping tasks.
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func waitForSleepers(_ count: Int) async throws {
    try await sleepers.wait { $0.count >= count }
  }
}

extension ManualClock {
  /// An instant of a ``ManualClock``.
  public struct Instant: InstantProtocol {
    /// The duration since the clock's zero.
    public let offset: Duration

    /// Creates an instant.
    ///
    /// - Parameter offset: The duration since the clock's zero. Defaults to zero.
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

extension QueueEnvironment {
  /// Returns an environment whose time a test moves by a manual clock.
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// let queue = try await StoreQueue<MemoryStore<[UInt8]>, Int>(
  ///   MemoryStore(), prefix: "queue/", codec: .json(), environment: .manual(clock))
  /// ```
  ///
  /// - Parameters:
  ///   - clock: The clock. It also gives the date.
  ///   - randomness: The generator of random numbers, which differ for each object. Defaults to the system's. In a
  ///     ``ScheduledTrial``, pass ``ScheduledContext/generator(_:)``, so that its schedules can be repeated.
  public static func manual(
    _ clock: ManualClock, randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) -> QueueEnvironment {
    QueueEnvironment(clock: clock, now: { clock.date }, randomness: randomness)
  }
}

extension SharedClock {
  /// Returns a clock for a `StoreLimiter` whose time a test moves by a manual clock.
  ///
  /// ```swift
  /// let limiter = try StoreLimiter(
  ///   MemoryStore(), key: "limit", configuration: LimiterConfiguration(concurrency: 1), time: .manual(clock), clock: clock)
  /// ```
  ///
  /// - Parameter clock: The clock. It is the same on all machines.
  public static func manual(_ clock: ManualClock) -> SharedClock {
    SharedClock(spansHosts: true) { ClockReading(origin: 0, nanoseconds: clock.now.offset.wholeNanoseconds) }
  }
}
