/// How often and after which time a ``WriteBehindStore`` tries again to write what may succeed later.
///
/// Only an error that says both `isRetryable` and `nothingChanged` leads to another attempt.
public struct RetryPolicy: Sendable, Hashable {
  /// How many more attempts there are after the first; 0 for none.
  public let attempts: Int

  /// How long the first wait is; each further one is twice as long.
  public let firstDelay: Duration

  /// How long a wait is at most.
  public let maximumDelay: Duration

  /// Makes a policy.
  ///
  /// - Parameters:
  ///   - attempts: How many more attempts there are after the first; 8 unless given, 0 for none.
  ///   - firstDelay: How long the first wait is; 10 milliseconds unless given. Each further one is twice as long.
  ///   - maximumDelay: How long a wait is at most; a second unless given.
  public init(
    attempts: Int = 8, firstDelay: Duration = .milliseconds(10), maximumDelay: Duration = .seconds(1)
  ) {
    self.attempts = max(0, attempts)
    self.firstDelay = max(.zero, firstDelay)
    self.maximumDelay = max(.zero, maximumDelay)
  }

  /// How long to wait before a further attempt.
  ///
  /// - Parameter attempt: Which one, from 0.
  /// - Returns: The time, or `nil` where there is no further attempt.
  func delay(before attempt: Int) -> Duration? {
    guard attempt < attempts else { return nil }
    var delay = min(firstDelay, maximumDelay)
    // Not by a power of two at once, which could be more than can be counted; after so many doublings any delay is long.
    for _ in 0..<min(attempt, 96) where delay < maximumDelay {
      delay = delay > maximumDelay / 2 ? maximumDelay : delay * 2
    }
    return delay
  }
}
