#if Postgres
public import Larder

/// The rules of a ``PostgresQueue``.
///
/// Each object applies its own rules, so all objects that use a queue must be given the same.
///
/// ```swift
/// let configuration = PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 10), capacity: 100_000)
/// let limited = try await PostgresQueue<Job>(in: database, name: "limited", configuration: configuration)
/// ```
public struct PostgresQueueConfiguration: Sendable, Hashable {
  /// The deliveries, retries, remembered keys and dead letters.
  public var policy: QueuePolicy

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
  ///   - policy: The deliveries, retries, remembered keys and dead letters. Defaults to the usual ones; see
  ///     `QueuePolicy`.
  ///   - capacity: The maximum number of items, including dead letters. Defaults to `nil`, for no limit.
  ///   - pollInterval: The time between two looks of a waiting consumer. Defaults to 1 second.
  public init(
    policy: QueuePolicy = QueuePolicy(), capacity: Int? = nil, pollInterval: Duration = .seconds(1)
  ) {
    self.policy = policy
    self.capacity = capacity
    self.pollInterval = pollInterval
  }
}

extension PostgresQueueConfiguration {
  /// Throws `invalidArgument` if a rule is out of range.
  func check(store: String) throws {
    try policy.check(
      store: store,
      others: [
        (capacity ?? 1 >= 1, "`capacity` must be at least 1, not \(capacity ?? 1)"),
        (pollInterval > .zero, "`pollInterval` must be greater than zero, not \(pollInterval)"),
      ])
  }

  /// The number of deliveries after which an item becomes a dead letter, or one that no item reaches.
  var deliveryLimit: Int64 { Int64(min(policy.maximumDeliveries ?? .max, Int(Int32.max))) }
}
#endif
