/// The rules of a queue, given each time that it is opened.
public struct QueueConfiguration: Sendable, Hashable {
  /// How often an item is delivered before it becomes a dead letter; `nil` for any number of times.
  ///
  /// With 1, an item is dead when its first consumer dies.
  public var maximumDeliveries: Int?

  /// How long a key is remembered after its item was acknowledged, so that it is not enqueued again.
  ///
  /// Each key takes some memory until then. Generated keys are not remembered.
  public var duplicateWindow: Duration

  /// How much the queue may hold, and what happens to a write that does not fit.
  public var capacity: QueueCapacity

  /// From how many bytes on a new file of the log is begun.
  ///
  /// Space is given back a file at a time, and a queue that is empty takes up to two of them.
  public var segmentSize: Int

  /// Makes rules.
  ///
  /// - Parameters:
  ///   - maximumDeliveries: How often an item is delivered before it becomes a dead letter; 5 unless given, `nil` for any
  ///     number of times.
  ///   - duplicateWindow: How long a key is remembered after acknowledgement; 5 minutes unless given.
  ///   - capacity: How much the queue may hold; ``QueueCapacity/unlimited`` unless given.
  ///   - segmentSize: From how many bytes on a new file of the log is begun; 32 MiB unless given.
  public init(
    maximumDeliveries: Int? = 5, duplicateWindow: Duration = .seconds(300), capacity: QueueCapacity = .unlimited,
    segmentSize: Int = 32 << 20
  ) {
    self.maximumDeliveries = maximumDeliveries
    self.duplicateWindow = duplicateWindow
    self.capacity = capacity
    self.segmentSize = segmentSize
  }
}
