import Larder

/// The starts that the rate limit of a worker permits.
///
/// This is plain state without any clock. The items of a batch start together, and the next start waits for the time of all of them.
struct RateSchedule: Sendable {
  private let limit: RateLimit
  private var state = RateLimitState()

  init(_ limit: RateLimit) {
    self.limit = limit
  }

  /// Reserves a start if one is permitted now.
  ///
  /// - Parameter now: The time since an arbitrary moment, which never decreases.
  /// - Returns: A Boolean value that indicates whether the caller may start.
  mutating func reserveAtOnce(at now: Duration) -> Bool {
    var next = state
    guard next.reserve(by: limit, at: ClockReading(at: now)) == .zero else { return false }
    state = next
    return true
  }

  /// Reserves the next start.
  ///
  /// - Parameters:
  ///   - count: The number of items that start together. Defaults to 1.
  ///   - now: The time since an arbitrary moment, which never decreases.
  /// - Returns: How long you must wait before it starts.
  mutating func reserve(_ count: Int = 1, at now: Duration) -> Duration {
    state.reserve(count, by: limit, at: ClockReading(at: now))
  }
}

extension ClockReading {
  fileprivate init(at time: Duration) {
    self.init(origin: 0, nanoseconds: time.wholeNanoseconds)
  }
}
