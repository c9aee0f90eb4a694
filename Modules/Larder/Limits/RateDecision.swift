/// The answer to a request for starts that does not wait; see ``StoreLimiter/takeStarts(_:upTo:)``.
public struct RateDecision: Sendable, Hashable {
  /// The number of starts that were taken, or 0 if the request was refused.
  public let starts: Int

  /// The number of starts that are available now, to any caller.
  public let remaining: Int

  /// The time until the whole burst is available if nothing starts until then.
  public let fullAfter: Duration

  /// The time after which to repeat a request that was refused, or zero.
  public let retryAfter: Duration

  /// A Boolean value that indicates whether starts were taken.
  public var isGranted: Bool { starts > 0 }

  /// Creates a decision.
  ///
  /// - Parameters:
  ///   - starts: The number of starts that were taken, or 0 if the request was refused.
  ///   - remaining: The number of starts that are available now.
  ///   - fullAfter: The time until the whole burst is available.
  ///   - retryAfter: The time after which to repeat a request that was refused, or zero.
  public init(starts: Int, remaining: Int, fullAfter: Duration, retryAfter: Duration) {
    self.starts = starts
    self.remaining = remaining
    self.fullAfter = fullAfter
    self.retryAfter = retryAfter
  }
}

extension RateLimitState {
  /// Returns how many starts are available at the same moment.
  ///
  /// - Parameters:
  ///   - limit: The limit.
  ///   - reading: The time.
  /// - Returns: The number, from 0 to the burst.
  public func available(by limit: RateLimit, at reading: ClockReading) -> Int {
    let state = settled(by: limit, at: reading)
    let present = state.present(at: reading)
    let unavailable = min(max(state.fullAt, present).addingSaturating(-present), limit.capacity)
    let unspent = max(0, Int64(limit.burst) - state.recentStarts)
    return Int(min((limit.capacity - unavailable) / limit.spacing, unspent))
  }

  /// Returns the time until the whole burst is available if nothing starts until then, in nanoseconds.
  func wait(untilFullBy limit: RateLimit, at reading: ClockReading) -> Int64 {
    max(wholeFullAt(by: limit), reading.earliest).addingSaturating(-reading.earliest)
  }
}
