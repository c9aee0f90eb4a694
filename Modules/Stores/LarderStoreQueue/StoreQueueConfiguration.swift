public import Larder

/// The rules of a ``StoreQueue``.
///
/// Each object applies its own rules, so all objects that use a queue must be given the same.
///
/// ```swift
/// let policy = QueuePolicy(maximumDeliveries: 10, deadLetterRetention: .seconds(30 * 86_400))
/// let configuration = StoreQueueConfiguration(policy: policy)
/// let jobs = try await bytes.queue(of: Job.self, prefix: "jobs/", codec: .json(), configuration: configuration)
/// ```
public struct StoreQueueConfiguration: Sendable, Hashable {
  /// The deliveries, retries, remembered keys and dead letters.
  public var policy: QueuePolicy

  /// The time between two looks of a waiting consumer, unless the base reports the commits of all programs.
  public var pollInterval: Duration

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - policy: The deliveries, retries, remembered keys and dead letters. Defaults to the usual ones; see
  ///     `QueuePolicy`.
  ///   - pollInterval: The time between two looks of a waiting consumer, unless the base reports the commits of all
  ///     programs. Defaults to 1 second.
  public init(
    policy: QueuePolicy = QueuePolicy(), pollInterval: Duration = .seconds(1)
  ) {
    self.policy = policy
    self.pollInterval = pollInterval
  }
}

extension StoreQueueConfiguration {
  /// Throws `invalidArgument` if a rule is out of range.
  func check(store: String) throws {
    try policy.check(
      store: store,
      others: [(pollInterval > .zero, "`pollInterval` must be greater than zero, not \(pollInterval)")])
  }

  var rules: QueueRules {
    QueueRules(
      maximumDeliveries: policy.maximumDeliveries.map { UInt32(clamping: $0) },
      duplicateWindow: policy.duplicateWindow.wholeMicroseconds,
      deadLetterRetention: policy.deadLetterRetention?.wholeMicroseconds)
  }
}
