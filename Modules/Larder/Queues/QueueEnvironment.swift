public import Foundation

/// The clocks and the random numbers of a queue, which tests replace.
///
/// ```swift
/// let clock = ManualClock()
/// let queue = try await QueueStore<Job>(path: path, codec: .cbor(), environment: .manual(clock))
/// ```
///
/// `ManualClock` and `manual(_:)` are in `LarderTesting`.
public struct QueueEnvironment: Sendable {
  /// The monotonic clock by which consumers wait.
  ///
  /// A queue that only one process opens also measures leases and delays by it.
  public var clock: any Clock<Duration>

  /// A closure that returns the wall-clock time, by which leases and delays are stored; `nil` for the time of the system, or
  /// of the server if the queue has one.
  public var now: (@Sendable () -> Date)?

  /// The generator of the random part of the delays in ``RetryPolicy``, and of a `StoreQueue`'s numbers for items and leases.
  ///
  /// Each object of a queue needs a generator with other numbers: from equal ones, two would give their items the same keys.
  public var randomness: any RandomNumberGenerator & Sendable

  /// Creates an environment.
  ///
  /// - Parameters:
  ///   - clock: The monotonic clock by which consumers wait. Defaults to a `ContinuousClock`.
  ///   - now: A closure that returns the wall-clock time. Defaults to `nil`, for the time of the system or the server.
  ///   - randomness: The generator of random numbers, which differ for each object. Defaults to the system's.
  public init(
    clock: any Clock<Duration> = ContinuousClock(), now: (@Sendable () -> Date)? = nil,
    randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.clock = clock
    self.now = now
    self.randomness = randomness
  }
}
