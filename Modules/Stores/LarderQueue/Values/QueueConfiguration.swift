/// The rules of a queue, given each time that it is opened.
public struct QueueConfiguration: Sendable, Hashable {
  /// How often an item is delivered before it becomes a dead letter; `nil` for any number of times.
  ///
  /// With 1, an item is dead when its first consumer dies. Without a limit, an item that cannot be decoded is dead all the
  /// same after five deliveries.
  public var maximumDeliveries: Int?

  /// How long items are kept back that come back without another time being given.
  public var retryPolicy: RetryPolicy

  /// How long a key is remembered after its item was acknowledged, or became a dead letter, so that it is not enqueued again.
  ///
  /// Each key takes some memory until then. Generated keys are not remembered.
  public var duplicateWindow: Duration

  /// How long dead letters are kept; `nil` for ever.
  public var deadLetterLifetime: Duration?

  /// How much the queue may hold, and what happens to a write that does not fit.
  public var capacity: QueueCapacity

  /// From how many bytes on a new file of the log is begun.
  ///
  /// Space is given back a file at a time, and a queue that is empty takes up to two of them, and what is kept for a full
  /// disk: a quarter of a segment, but 64 KiB at least and 1 MiB at most.
  public var segmentSize: Int

  /// Makes rules.
  ///
  /// - Parameters:
  ///   - maximumDeliveries: How often an item is delivered before it becomes a dead letter; defaults to 5, `nil` for any
  ///     number of times.
  ///   - retryPolicy: How long items are kept back that come back; defaults to 1 second to 5 minutes.
  ///   - duplicateWindow: How long a key is remembered after acknowledgement or death; defaults to 5 minutes.
  ///   - deadLetterLifetime: How long dead letters are kept; defaults to `nil`, for ever.
  ///   - capacity: How much the queue may hold; defaults to ``QueueCapacity/unlimited``.
  ///   - segmentSize: From how many bytes on a new file of the log is begun; defaults to 32 MiB.
  public init(
    maximumDeliveries: Int? = 5, retryPolicy: RetryPolicy = RetryPolicy(), duplicateWindow: Duration = .seconds(300),
    deadLetterLifetime: Duration? = nil, capacity: QueueCapacity = .unlimited, segmentSize: Int = 32 << 20
  ) {
    self.maximumDeliveries = maximumDeliveries
    self.retryPolicy = retryPolicy
    self.duplicateWindow = duplicateWindow
    self.deadLetterLifetime = deadLetterLifetime
    self.capacity = capacity
    self.segmentSize = segmentSize
  }
}
