/// How long an item is kept back that was given back: twice as long each time, up to a ceiling, and a random part less.
///
/// The random part keeps items that failed together from coming back together.
public struct RetryPolicy: Sendable, Hashable {
  /// How long after the first delivery, before the random part is taken off.
  public var base: Duration

  /// The longest time; from some delivery on it is always this.
  public var ceiling: Duration

  /// How much of the time is random, from 0 for nothing to 1 for all of it.
  public var jitter: Double

  /// Makes a policy.
  ///
  /// - Parameters:
  ///   - base: How long after the first delivery; defaults to 1 second.
  ///   - ceiling: The longest time; defaults to 5 minutes.
  ///   - jitter: How much of the time is random, from 0 to 1; defaults to half of it.
  public init(base: Duration = .seconds(1), ceiling: Duration = .seconds(300), jitter: Double = 0.5) {
    self.base = base
    self.ceiling = ceiling
    self.jitter = jitter
  }

  /// Items come back at once.
  public static let immediate = RetryPolicy(base: .zero, ceiling: .zero, jitter: 0)

  /// How long an item is kept back.
  ///
  /// - Parameters:
  ///   - attempt: How often it was delivered, the last time included.
  ///   - generator: Gives the random part.
  public func delay(afterAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
    var delay = min(base, ceiling)
    for _ in 1..<max(min(attempt, 64), 1) where delay < ceiling { delay = min(delay * 2, ceiling) }
    // One number each time, whatever the policy is.
    let part = Double.random(in: 0..<1, using: &generator)
    return delay - delay * (part * min(max(jitter, 0), 1))
  }
}
