public import Larder

/// The rules of a ``StoreQueue``.
///
/// Each object applies its own rules, so all objects that use a queue must be given the same.
///
/// ```swift
/// let configuration = StoreQueueConfiguration(maximumDeliveries: 10, deadLetterRetention: .seconds(30 * 86_400))
/// let jobs = try await bytes.queue(of: Job.self, prefix: "jobs/", codec: .json(), configuration: configuration)
/// ```
public struct StoreQueueConfiguration: Sendable, Hashable {
  /// The number of deliveries after which an item becomes a dead letter; `nil` for no limit.
  ///
  /// Without a limit, an item that cannot be decoded still becomes a dead letter after five deliveries.
  public var maximumDeliveries: Int?

  /// The delay of items that are released without an explicit delay.
  public var retryPolicy: RetryPolicy

  /// The time that an id is remembered after its item was acknowledged or became a dead letter, so it is not
  /// enqueued again.
  ///
  /// Generated keys are not remembered.
  public var duplicateWindow: Duration

  /// The time after which an item that becomes a dead letter is removed; `nil` for no limit.
  public var deadLetterRetention: Duration?

  /// The time between two looks of a waiting consumer, unless the base reports the commits of all programs.
  public var pollInterval: Duration

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - maximumDeliveries: The number of deliveries after which an item becomes a dead letter, or `nil` for no limit.
  ///     Defaults to 5.
  ///   - retryPolicy: The delay of items that are released without an explicit delay. Defaults to 1 second, doubling up
  ///     to 5 minutes.
  ///   - duplicateWindow: The time that an id is remembered after its item was acknowledged or became a dead
  ///     letter. Defaults to 5 minutes.
  ///   - deadLetterRetention: The time after which a dead letter is removed. Defaults to `nil`, for no limit.
  ///   - pollInterval: The time between two looks of a waiting consumer, unless the base reports the commits of all
  ///     programs. Defaults to 1 second.
  public init(
    maximumDeliveries: Int? = 5, retryPolicy: RetryPolicy = RetryPolicy(), duplicateWindow: Duration = .seconds(300),
    deadLetterRetention: Duration? = nil, pollInterval: Duration = .seconds(1)
  ) {
    self.maximumDeliveries = maximumDeliveries
    self.retryPolicy = retryPolicy
    self.duplicateWindow = duplicateWindow
    self.deadLetterRetention = deadLetterRetention
    self.pollInterval = pollInterval
  }
}

extension StoreQueueConfiguration: LeasingQueueConfiguration {
  /// Throws `invalidArgument` if a rule is out of range.
  func check(store: String) throws {
    try check(
      store: store,
      others: [(pollInterval > .zero, "`pollInterval` must be greater than zero, not \(pollInterval)")])
  }

  var rules: QueueRules {
    QueueRules(
      maximumDeliveries: maximumDeliveries.map { UInt32(clamping: $0) },
      duplicateWindow: duplicateWindow.wholeMicroseconds,
      deadLetterRetention: deadLetterRetention?.wholeMicroseconds)
  }
}
