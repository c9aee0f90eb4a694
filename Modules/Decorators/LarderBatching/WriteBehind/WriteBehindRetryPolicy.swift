/// The delays and the limits of a ``WriteBehindStore``'s retries.
///
/// Every change whose error is `isRetryable` stays pending and readable, and is tried again until it is written. A full
/// disk, a lock of another program and a lost connection are such errors. The number of retries has no limit.
///
/// ```swift
/// let policy = WriteBehindRetryPolicy(maximumDelay: .seconds(10), maximumAge: .seconds(3600))
/// let positions = base.writeBehind(retries: policy)
/// ```
public struct WriteBehindRetryPolicy: Sendable, Hashable {
  /// The delay before the first retry.
  ///
  /// Each further delay is twice as long.
  public let firstDelay: Duration

  /// The maximum delay.
  public let maximumDelay: Duration

  /// The number of retries after which operations that need the base no longer wait for the pending changes.
  ///
  /// Scans, counts, updates, range removals, `synchronize()` and maintenance then throw the error of the base.
  public let readRetries: Int

  /// The age at which a change whose retry has failed is given up, or `nil` to retry without a limit.
  public let maximumAge: Duration?

  /// The time that `close()` waits for changes to be written, or `nil` to wait without a limit.
  public let closingTime: Duration?

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - firstDelay: The delay before the first retry. Each further delay is twice as long. Defaults to 10
  ///     milliseconds, and is at least one millisecond.
  ///   - maximumDelay: The maximum delay. Defaults to one second, and is at least one millisecond.
  ///   - readRetries: The number of retries after which scans, counts, updates, range removals, `synchronize()` and
  ///     maintenance no longer wait for the pending changes, and throw the error of the base. Defaults to 8. It takes about
  ///     three seconds with the default delays.
  ///   - maximumAge: The age at which a change whose retry has failed is given up. Defaults to `nil`, for no limit.
  ///   - closingTime: The time that `close()` waits for changes to be written before it hands them over. Defaults to
  ///     `nil`, for no limit.
  public init(
    firstDelay: Duration = .milliseconds(10), maximumDelay: Duration = .seconds(1), readRetries: Int = 8,
    maximumAge: Duration? = nil, closingTime: Duration? = nil
  ) {
    // Without a delay, an outage would keep a processor busy.
    self.firstDelay = max(.milliseconds(1), firstDelay)
    self.maximumDelay = max(.milliseconds(1), maximumDelay)
    self.readRetries = max(0, readRetries)
    self.maximumAge = maximumAge
    self.closingTime = closingTime
  }

  /// Returns the delay before a retry.
  ///
  /// - Parameter attempt: The index of the retry, from 0.
  func delay(before attempt: Int) -> Duration {
    var delay = min(firstDelay, maximumDelay)
    // Doubling step by step avoids the overflow of a large power of two. After 96 doublings, any delay has reached its
    // maximum.
    for _ in 0..<min(attempt, 96) where delay < maximumDelay {
      delay = delay > maximumDelay / 2 ? maximumDelay : delay * 2
    }
    return delay
  }
}
