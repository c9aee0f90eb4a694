#if Postgres
import Larder

/// The time of the next look for items that are due, which all waiting consumers of an object share.
///
/// At that time, one of the consumers looks, and the others continue to wait.
final class LookSchedule: Sendable {
  private let interval: Duration
  private let clock: any Clock<Duration>
  private let elapsed: ElapsedTime

  /// In time elapsed by the clock.
  private let next: Locked<Duration>

  /// Creates a schedule.
  ///
  /// - Parameters:
  ///   - interval: The longest time between two looks while a consumer waits.
  ///   - clock: The clock that measures it.
  init(every interval: Duration, by clock: any Clock<Duration>) {
    self.interval = interval
    self.clock = clock
    elapsed = ElapsedTime(by: clock)
    next = Locked(elapsed.duration)
  }

  /// Returns when it is time to look, and the caller is the one to do so.
  ///
  /// - Throws: `CancellationError`.
  func waitForTurn() async throws {
    repeat { try await clock.sleep(for: timeLeft) } while !claim()
  }

  /// Plans the next look after one that found nothing.
  ///
  /// - Parameter end: The time until the next delay or lease ends, or `nil` if there isn't one.
  func plan(nextEnd end: Duration?) {
    next.withLock { next in
      let now = elapsed.duration
      if next <= now { next = now + interval }
      if let end { next = min(next, now + end) }
    }
  }

  private var timeLeft: Duration { next.withLock { max($0 - elapsed.duration, .zero) } }

  private func claim() -> Bool {
    next.withLock { next in
      let now = elapsed.duration
      guard next <= now else { return false }
      next = now + interval
      return true
    }
  }
}
#endif
