/// A limit on the number of items that a ``QueueWorker`` starts in a time.
///
/// The items of a batch start together, and the next start waits for the time of all of them.
///
/// ```swift
/// let limit = QueueRateLimit(100, per: .seconds(60))
/// ```
public struct QueueRateLimit: Sendable, Hashable {
  /// The maximum number of items in an interval.
  public let count: Int

  /// The interval.
  public let interval: Duration

  /// Creates a limit.
  ///
  /// - Parameters:
  ///   - count: The maximum number of items that start within the interval, at least 1.
  ///   - interval: The interval, greater than zero.
  public init(_ count: Int, per interval: Duration) {
    self.count = count
    self.interval = interval
  }
}

/// The starts that a rate limit permits.
///
/// This is plain state without any clock. It is the generic cell rate algorithm of ITU-T I.371, in its form as a virtual
/// scheduling algorithm, for single starts without a burst: starts are evenly spaced, so that no interval, wherever it
/// begins, has more of them than the limit.
struct RateSchedule: Sendable {
  private let spacing: Duration
  private var nextStart: Duration = .zero

  init(_ limit: QueueRateLimit) {
    // A worker with an invalid limit refuses to run.
    spacing = limit.interval / max(limit.count, 1)
  }

  /// Reserves a start if one is permitted now.
  ///
  /// - Parameter now: The time since an arbitrary moment, which never decreases.
  /// - Returns: Whether the caller may start.
  mutating func reserveAtOnce(at now: Duration) -> Bool {
    guard nextStart <= now else { return false }
    return reserve(at: now) <= .zero
  }

  /// Reserves the next start.
  ///
  /// - Parameters:
  ///   - count: The number of items that start together; defaults to 1.
  ///   - now: The time since an arbitrary moment, which never decreases.
  /// - Returns: How long the caller must wait before it starts.
  mutating func reserve(_ count: Int = 1, at now: Duration) -> Duration {
    let start = max(now, nextStart)
    nextStart = start + spacing * count
    return start - now
  }
}
