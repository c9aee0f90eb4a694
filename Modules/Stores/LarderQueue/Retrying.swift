import Synchronization

/// How long items are kept back that come back, and what sleeps meanwhile.
final class Retrying: Sendable {
  private let policy: RetryPolicy
  let clock: any Clock<Duration>
  private let generator: Mutex<any RandomNumberGenerator & Sendable>

  init(policy: RetryPolicy, clock: any Clock<Duration>, generator: any RandomNumberGenerator & Sendable) {
    self.policy = policy
    self.clock = clock
    self.generator = Mutex(generator)
  }

  /// How long an item is kept back, in microseconds.
  ///
  /// - Parameter attempt: How often it was delivered.
  func delay(afterAttempt attempt: UInt32) -> Int64 {
    generator.withLock { generator in
      func delay(_ generator: inout some RandomNumberGenerator) -> Duration {
        policy.delay(afterAttempt: Int(attempt), using: &generator)
      }
      return delay(&generator).microseconds
    }
  }
}
