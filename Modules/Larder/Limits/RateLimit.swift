/// A limit on the number of starts in a time.
///
/// In every window of time, wherever it begins, there are at most ``burst`` starts, and further ones in proportion to
/// its length: `count / interval` for each unit of time.
///
/// ```swift
/// let limit = RateLimit(100, per: .seconds(60), burst: 10)
/// ```
///
/// With this limit, a minute has at most 110 starts, and a moment at most 10.
public struct RateLimit: Sendable, Hashable {
  /// The number of starts in an interval.
  public let count: Int

  /// The interval.
  public let interval: Duration

  /// The maximum number of starts at the same moment, after a time with fewer starts than the limit permits.
  public let burst: Int

  /// Creates a limit.
  ///
  /// - Parameters:
  ///   - count: The number of starts in an interval, at least 1.
  ///   - interval: The interval, greater than zero.
  ///   - burst: The maximum number of starts at the same moment, from 1 to 1,000,000,000. Defaults to 1, with which
  ///     starts are evenly spaced. The time for a whole burst, `interval * burst / count`, must be shorter than 30
  ///     years.
  public init(_ count: Int, per interval: Duration, burst: Int = 1) {
    self.count = count
    self.interval = interval
    self.burst = burst
  }

  /// The time between two evenly spaced starts, in nanoseconds, rounded up so that the limit is never exceeded.
  var spacing: Int64 {
    let divisor = Int128(max(count, 1)) * 1_000_000_000
    return Int64(clamping: max((interval.attoseconds + divisor - 1) / divisor, 1))
  }

  /// The time when a whole burst becomes available, in nanoseconds.
  var capacity: Int64 { time(for: burst) }

  /// Returns the time when some starts become available, in nanoseconds.
  func time(for starts: Int) -> Int64 {
    let (time, overflows) = spacing.multipliedReportingOverflow(by: Int64(starts))
    return overflows ? .max : time
  }

  /// The longest time for a whole burst, in nanoseconds, which can be added to any time.
  private static let longestCapacity: Int64 = 30 * 366 * 86_400 * 1_000_000_000

  /// The reason why the limit is invalid, for an error message, or `nil` if it is valid.
  public var problem: String? {
    if count < 1 { return "the count of a rate limit must be at least 1, not \(count)" }
    if interval <= .zero { return "the interval of a rate limit must be greater than zero, not \(interval)" }
    if !(1...1_000_000_000).contains(burst) {
      return "the burst of a rate limit must be between 1 and 1,000,000,000, not \(burst)"
    }
    guard capacity > Self.longestCapacity else { return nil }
    return "the time for a whole burst of a rate limit must be shorter than 30 years"
  }
}

/// The starts that a ``RateLimit`` permits, by a clock that is read elsewhere.
///
/// This is plain state without any I/O. It is the generic cell rate algorithm of ITU-T Recommendation I.371, in its
/// form as a virtual scheduling algorithm: the only state is the theoretical arrival time, here ``fullAt``. A start
/// moves it by the time between two evenly spaced starts, and is permitted if the time is then at most a whole burst
/// ahead of the clock.
///
/// ## Uncertain readings
///
/// A start counts as late as it can have been, and a request as early as it can be, but not before ``presentAtLeast``. So that
/// slow readings do not use up a burst, the starts that are not certainly past are counted apart, as ``recentStarts``: however uncertain
/// their times are, a request is permitted if it and these starts are at most a burst, and the earlier ones permit it.
///
/// ```swift
/// var state = RateLimitState()
/// let wait = state.take(by: RateLimit(10, per: .seconds(1)), at: reading)
/// if wait > .zero { throw TooManyRequests(retryAfter: wait) }
/// ```
public struct RateLimitState: Sendable, Hashable {
  /// The time when the whole burst is available if nothing starts until then, apart from ``recentStarts``, in nanoseconds
  /// since the origin of the clock.
  public private(set) var fullAt: Int64

  /// The number of starts since the first one that was not certainly past at the latest request.
  public private(set) var recentStarts: Int64 = 0

  /// The latest time that these starts can have, or 0 without such starts.
  public private(set) var recentUntil: Int64 = 0

  /// The time that was certainly reached at the latest start, so that no later request is earlier.
  public private(set) var presentAtLeast: Int64 = .min

  /// Creates the state before the first start, with the whole burst available.
  public init() {
    fullAt = .min
  }

  /// Creates a state that was stored.
  ///
  /// - Parameters:
  ///   - fullAt: The time when the whole burst is available, apart from the recent starts.
  ///   - recentStarts: The number of recent starts. Defaults to 0.
  ///   - recentUntil: The latest time that these starts can have. Defaults to 0.
  ///   - presentAtLeast: The time that was certainly reached at the latest start. Defaults to the smallest number.
  public init(fullAt: Int64, recentStarts: Int64 = 0, recentUntil: Int64 = 0, presentAtLeast: Int64 = .min) {
    self.fullAt = fullAt
    self.recentStarts = max(0, recentStarts)
    self.recentUntil = recentStarts > 0 ? recentUntil : 0
    self.presentAtLeast = presentAtLeast
  }

  /// Removes all available starts, because it is unknown how long ago the latest one was.
  mutating func empty() {
    self = RateLimitState(fullAt: .max)
  }

  /// Corrects times that are too far ahead, because the clock was set back, or was read with less certainty before.
  ///
  /// The limit holds whatever the clock did.
  mutating func bound(by limit: RateLimit, at reading: ClockReading) {
    // All starts have happened by now.
    fullAt = min(fullAt, reading.latest.addingSaturating(limit.capacity))
    if recentStarts > 0 { recentUntil = min(recentUntil, reading.latest) }
    presentAtLeast = min(presentAtLeast, reading.latest)
  }

  /// Returns the time that is certainly reached at a reading.
  func present(at reading: ClockReading) -> Int64 { max(reading.earliest, presentAtLeast) }

  /// Returns the state without recent starts if they are certainly past.
  func settled(by limit: RateLimit, at reading: ClockReading) -> RateLimitState {
    guard recentUntil <= present(at: reading) else { return self }
    return RateLimitState(fullAt: wholeFullAt(by: limit), presentAtLeast: presentAtLeast)
  }

  /// Returns the time when the whole burst is available if nothing starts until then.
  func wholeFullAt(by limit: RateLimit) -> Int64 {
    guard recentStarts > 0 else { return fullAt }
    return max(fullAt, recentUntil.addingSaturating(limit.time(for: Int(clamping: recentStarts))))
  }

  /// Returns how long to wait until some starts are available, in nanoseconds; 0 if they are.
  func wait(for starts: Int, by limit: RateLimit, at reading: ClockReading) -> Int64 {
    let state = settled(by: limit, at: reading)
    let isWithinBurst = Int64(starts) <= Int64(limit.burst) - state.recentStarts
    let fullAt = isWithinBurst ? state.fullAt : state.wholeFullAt(by: limit)
    let present = present(at: reading)
    let start = max(fullAt, present).addingSaturating(limit.time(for: starts)).addingSaturating(-limit.capacity)
    return start <= present ? 0 : start.addingSaturating(-reading.earliest)
  }

  /// Takes starts if they are available.
  ///
  /// - Parameters:
  ///   - starts: The number of starts that happen at the same moment. More than the burst are never available.
  ///   - limit: The limit.
  ///   - reading: The time.
  /// - Returns: Zero if the starts were taken; otherwise, the time after which they are available if nothing else
  ///   starts.
  public mutating func take(_ starts: Int = 1, by limit: RateLimit, at reading: ClockReading) -> Duration {
    bound(by: limit, at: reading)
    let wait = wait(for: starts, by: limit, at: reading)
    if wait == 0 { note(starts, by: limit, at: reading) }
    return .nanoseconds(wait)
  }

  /// Takes starts, whether or not they are available yet.
  ///
  /// Use it if the starts of one process are limited, where each caller makes the start that it has reserved. The state
  /// can then be any time ahead of the clock. The clock must not be set back.
  ///
  /// - Parameters:
  ///   - starts: The number of starts that happen at the same moment. Defaults to 1. If there are several, the caller
  ///     waits for the first one only, and the next caller for all of them.
  ///   - limit: The limit.
  ///   - reading: The time.
  /// - Returns: How long you must wait.
  public mutating func reserve(_ starts: Int = 1, by limit: RateLimit, at reading: ClockReading) -> Duration {
    self = RateLimitState(fullAt: wholeFullAt(by: limit))
    let wait = wait(for: 1, by: limit, at: reading)
    fullAt = max(fullAt, reading.latest.addingSaturating(wait)).addingSaturating(limit.time(for: starts))
    return .nanoseconds(wait)
  }

  /// Counts starts that are available.
  mutating func note(_ starts: Int, by limit: RateLimit, at reading: ClockReading) {
    self = settled(by: limit, at: reading)
    // The recent starts say how late they can have been.
    fullAt = fullAt.addingSaturating(limit.time(for: starts))
    recentUntil = recentStarts > 0 ? max(recentUntil, reading.latest) : reading.latest
    recentStarts = recentStarts.addingSaturating(Int64(starts))
    presentAtLeast = present(at: reading)
  }
}
