/// The delay of released items: exponential backoff with a ceiling and jitter.
///
/// The jitter keeps items that failed together from being delivered again together.
///
/// ```swift
/// let policy = RetryPolicy(base: .seconds(5), ceiling: .seconds(3600), jitter: 0.2)
/// let configuration = QueueConfiguration(policy: QueuePolicy(retryPolicy: policy))
/// let queue = try await QueueStore<Event>(path: "outbox", configuration: configuration)
/// ```
public struct RetryPolicy: Sendable, Hashable {
  /// The delay after the first delivery, before jitter.
  ///
  /// It doubles with each further delivery.
  public var base: Duration

  /// The maximum delay, before jitter.
  public var ceiling: Duration

  /// The fraction of the delay that is random, from 0 to 1.
  ///
  /// The random part shortens the delay.
  public var jitter: Double

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - base: The delay after the first delivery. Defaults to 1 second.
  ///   - ceiling: The maximum delay. Defaults to 5 minutes.
  ///   - jitter: The fraction of the delay that is random, from 0 to 1. Defaults to 0.5.
  public init(base: Duration = .seconds(1), ceiling: Duration = .seconds(300), jitter: Double = 0.5) {
    self.base = base
    self.ceiling = ceiling
    self.jitter = jitter
  }

  /// A policy without a delay.
  public static let immediate = RetryPolicy(base: .zero, ceiling: .zero, jitter: 0)

  /// A Boolean value that indicates whether the durations are not negative, and the jitter is in its range.
  public var isValid: Bool { base >= .zero && ceiling >= .zero && (0...1).contains(jitter) }

  /// Returns the delay of an item.
  ///
  /// - Parameters:
  ///   - attempt: The number of times the item was delivered, including the last delivery.
  ///   - generator: The generator of the random part.
  public func delay(afterAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
    var delay = min(base, ceiling)
    for _ in 1..<max(min(attempt, 64), 1) where delay < ceiling { delay = min(delay * 2, ceiling) }
    // Each call draws one number, whatever the policy is.
    let part = Double.random(in: 0..<1, using: &generator)
    return delay - delay * (part * min(max(jitter, 0), 1))
  }
}

extension RetryPolicy {
  /// The pauses of a consumer after errors of its queue: from 0.1 seconds, doubling up to 30 seconds.
  public static let ofConsumers = RetryPolicy(base: .milliseconds(100), ceiling: .seconds(30), jitter: 0.5)

  /// Returns the delay of an item, or the pause of a consumer, with the system's random numbers.
  ///
  /// - Parameter attempt: The number of times the item was delivered, or of the errors in sequence.
  public func delay(afterAttempt attempt: Int) -> Duration {
    var generator = SystemRandomNumberGenerator()
    return delay(afterAttempt: attempt, using: &generator)
  }
}

/// The retry policy of a queue, with its random numbers and the clock that measures the waiting.
public final class RetryDelays: Sendable {
  private let policy: RetryPolicy
  /// The clock that measures the waiting.
  public let clock: any Clock<Duration>
  private let generator: Locked<any RandomNumberGenerator & Sendable>

  /// Creates a policy with its dependencies.
  ///
  /// - Parameters:
  ///   - policy: The policy.
  ///   - clock: The clock that measures the waiting.
  ///   - generator: The generator of the random part.
  public init(policy: RetryPolicy, clock: any Clock<Duration>, generator: any RandomNumberGenerator & Sendable) {
    self.policy = policy
    self.clock = clock
    self.generator = Locked(generator)
  }

  /// Returns how long an item is held back.
  ///
  /// - Parameter attempt: The number of times the item was delivered.
  public func delay(afterAttempt attempt: UInt32) -> Duration {
    generator.withLock { generator in
      func delay(_ generator: inout some RandomNumberGenerator) -> Duration {
        policy.delay(afterAttempt: Int(attempt), using: &generator)
      }
      return delay(&generator)
    }
  }
}
