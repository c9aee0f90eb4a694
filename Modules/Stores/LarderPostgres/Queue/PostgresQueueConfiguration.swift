#if Postgres
public import Larder

/// The rules of a ``PostgresQueue``.
///
/// Each object applies its own rules, so all objects that use a queue must be given the same.
///
/// ```swift
/// let configuration = PostgresQueueConfiguration(maximumDeliveries: 10, capacity: 100_000)
/// let limited = try await PostgresQueue<Job>(in: database, name: "limited", configuration: configuration)
/// ```
public struct PostgresQueueConfiguration: Sendable, Hashable {
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

  /// The time after which a dead letter is removed; `nil` for no limit.
  public var deadLetterRetention: Duration?

  /// The maximum number of items, including dead letters; `nil` for no limit.
  ///
  /// Enqueuing throws `full` if there is no room for all items of the call. With a limit, callers that enqueue take turns,
  /// because each of them must know what the others have added. Setting the value of a new key is limited as well.
  public var capacity: Int?

  /// The time between two looks of a waiting consumer, for items whose notification was lost.
  public var pollInterval: Duration

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - maximumDeliveries: The number of deliveries after which an item becomes a dead letter, or `nil` for no limit.
  ///     Defaults to 5.
  ///   - retryPolicy: The delay of items that are released without an explicit delay. Defaults to 1 second, doubling up
  ///     to 5 minutes.
  ///   - duplicateWindow: The time that an id is remembered after its item was acknowledged or became a dead letter.
  ///     Defaults to 5 minutes.
  ///   - deadLetterRetention: The time after which a dead letter is removed. Defaults to `nil`, for no limit.
  ///   - capacity: The maximum number of items, including dead letters. Defaults to `nil`, for no limit.
  ///   - pollInterval: The time between two looks of a waiting consumer. Defaults to 1 second.
  public init(
    maximumDeliveries: Int? = 5, retryPolicy: RetryPolicy = RetryPolicy(), duplicateWindow: Duration = .seconds(300),
    deadLetterRetention: Duration? = nil, capacity: Int? = nil, pollInterval: Duration = .seconds(1)
  ) {
    self.maximumDeliveries = maximumDeliveries
    self.retryPolicy = retryPolicy
    self.duplicateWindow = duplicateWindow
    self.deadLetterRetention = deadLetterRetention
    self.capacity = capacity
    self.pollInterval = pollInterval
  }
}

extension PostgresQueueConfiguration: LeasingQueueConfiguration {
  /// Throws `invalidArgument` if a rule is out of range.
  func check(store: String) throws {
    try check(
      store: store,
      others: [
        (capacity ?? 1 >= 1, "`capacity` must be at least 1, not \(capacity ?? 1)"),
        (pollInterval > .zero, "`pollInterval` must be greater than zero, not \(pollInterval)"),
      ])
  }

  /// The number of deliveries after which an item becomes a dead letter, or one that no item reaches.
  var deliveryLimit: Int64 { Int64(min(maximumDeliveries ?? .max, Int(Int32.max))) }
}
#endif
