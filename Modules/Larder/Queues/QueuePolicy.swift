/// The rules that all queues share: how often items are delivered, and how long their keys and dead letters are kept.
///
/// It is a part of the configuration of each queue.
///
/// ```swift
/// let policy = QueuePolicy(maximumDeliveries: 10, retryPolicy: RetryPolicy(base: .seconds(5)))
/// let jobs = try await bytes.queue(
///   of: Job.self, prefix: "jobs/", codec: .json(), configuration: StoreQueueConfiguration(policy: policy))
/// ```
public struct QueuePolicy: Sendable, Hashable {
  /// The number of deliveries after which an item becomes a dead letter; `nil` for no limit.
  ///
  /// With 1, an item becomes a dead letter if its first consumer fails. Without a limit, an item that cannot be decoded
  /// still becomes a dead letter after five deliveries.
  public var maximumDeliveries: Int?

  /// The delay of items that are released without an explicit delay.
  public var retryPolicy: RetryPolicy

  /// The time for which a key is remembered after its item was acknowledged or became a dead letter, so it is not
  /// enqueued again.
  ///
  /// Each remembered key takes some space. Generated keys are not remembered.
  public var duplicateWindow: Duration

  /// The time after which a dead letter is removed; `nil` for no limit.
  public var deadLetterRetention: Duration?

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - maximumDeliveries: The number of deliveries after which an item becomes a dead letter, or `nil` for no limit.
  ///     Defaults to 5.
  ///   - retryPolicy: The delay of items that are released without an explicit delay. Defaults to 1 second, doubling up
  ///     to 5 minutes.
  ///   - duplicateWindow: The time for which a key is remembered after its item was acknowledged or became a dead
  ///     letter. Defaults to 5 minutes.
  ///   - deadLetterRetention: The time after which a dead letter is removed. Defaults to `nil`, for no limit.
  public init(
    maximumDeliveries: Int? = 5, retryPolicy: RetryPolicy = RetryPolicy(), duplicateWindow: Duration = .seconds(300),
    deadLetterRetention: Duration? = nil
  ) {
    self.maximumDeliveries = maximumDeliveries
    self.retryPolicy = retryPolicy
    self.duplicateWindow = duplicateWindow
    self.deadLetterRetention = deadLetterRetention
  }

  /// Checks the rules, for authors of a ``DurableQueue``.
  ///
  /// - Parameters:
  ///   - store: The name of the queue, for the error.
  ///   - others: The other rules of the queue: whether each is in its range, and the message if it is not.
  /// - Throws: ``StoreError`` with `invalidArgument` if a rule is out of range.
  public func check(store: String, others: [(isValid: Bool, message: String)]) throws {
    let (deliveries, retention) = (maximumDeliveries ?? 1, deadLetterRetention ?? .zero)
    let rules = [
      (deliveries >= 1, "`maximumDeliveries` must be at least 1, not \(deliveries)"),
      (duplicateWindow >= .zero, "`duplicateWindow` must not be negative, but is \(duplicateWindow)"),
      (
        retryPolicy.isValid,
        "the durations of a retry policy must not be negative, and its jitter must be between 0 and 1"
      ),
      (retention >= .zero, "`deadLetterRetention` must not be negative, but is \(retention)"),
    ]
    for rule in rules + others where !rule.0 {
      throw StoreError(.invalidArgument, during: .open, store: store, message: rule.1)
    }
  }
}
