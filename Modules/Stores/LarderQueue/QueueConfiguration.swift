public import Larder

/// The rules of a queue.
///
/// They may differ each time that the queue is opened.
///
/// ```swift
/// let capacity = QueueCapacity(items: 10_000, bytes: 50_000_000, policy: .dropOldest)
/// let bounded = try await QueueStore<Event>(
///   path: folder + "/bounded",
///   configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 10), capacity: capacity))
/// ```
public struct QueueConfiguration: Sendable, Hashable {
  /// The deliveries, retries, remembered keys and dead letters.
  public var policy: QueuePolicy

  /// The capacity of the queue, and the policy for writes that exceed it.
  public var capacity: QueueCapacity

  /// The size, in bytes, at which the log rolls over to a new segment.
  ///
  /// Space is freed one segment at a time. An empty queue takes up to two segments and a reserve for a full disk, which
  /// is a quarter of a segment, but at least 64 KiB and at most 1 MiB.
  public var segmentSize: Int

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - policy: The deliveries, retries, remembered keys and dead letters. Defaults to the usual ones; see
  ///     `QueuePolicy`.
  ///   - capacity: The capacity of the queue. Defaults to ``QueueCapacity/unlimited``.
  ///   - segmentSize: The size, in bytes, at which the log rolls over to a new segment. Defaults to 32 MiB.
  public init(
    policy: QueuePolicy = QueuePolicy(), capacity: QueueCapacity = .unlimited, segmentSize: Int = 32 << 20
  ) {
    self.policy = policy
    self.capacity = capacity
    self.segmentSize = segmentSize
  }
}

extension QueueConfiguration {
  /// Throws `invalidArgument` if a rule is out of range.
  func check(store: String) throws {
    let (items, bytes) = (capacity.items ?? 1, capacity.bytes ?? 1)
    try policy.check(
      store: store,
      others: [
        (items >= 1, "a capacity must be at least 1 item, not \(items)"),
        (bytes >= 1, "a capacity must be at least 1 byte, not \(bytes)"),
        (
          (4096...1 << 30).contains(segmentSize),
          "`segmentSize` must be between 4,096 bytes and 1 GiB, not \(segmentSize)"
        ),
      ])
  }
}

/// The capacity of a queue, and the policy for writes that exceed it.
///
/// Waiting, delayed and leased items count, and so do dead letters. Replacing an item with a larger value also needs
/// room.
///
/// ```swift
/// let capacity = QueueCapacity(items: 10_000, bytes: 50_000_000, policy: .dropOldest)
/// let bounded = try await QueueStore<Event>(
///   path: folder + "/bounded",
///   configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 10), capacity: capacity))
/// ```
public struct QueueCapacity: Sendable, Hashable {
  /// The behavior of a write for which there is no room.
  ///
  /// ```swift
  /// let capacity = QueueCapacity(items: 10_000, policy: .refuse)  // enqueuing throws `full`
  /// ```
  public enum Policy: Sendable, Hashable, CaseIterable {
    /// The write throws `full`.
    case refuse
    /// The write waits until there is room, or until its task is cancelled.
    ///
    /// Waiters are served in order of arrival. A call that needs no room, such as a removal, does not wait.
    case wait
    /// Dead letters and then the oldest items are dropped, but never a leased item. If that does not make enough room,
    /// the write throws `full`.
    ///
    /// `EnqueuedItem.droppedCount` and the statistics count the dropped items.
    case dropOldest
  }

  /// The maximum number of items; `nil` for no limit.
  public var items: Int?

  /// The maximum size of keys and encoded values together, in bytes; `nil` for no limit.
  ///
  /// The folder takes more: a segment of the log is removed when all of its items are gone. See
  /// ``QueueConfiguration/segmentSize``.
  public var bytes: Int?

  /// The behavior of a write for which there is no room.
  public var policy: Policy

  /// Creates a capacity.
  ///
  /// - Parameters:
  ///   - items: The maximum number of items. Defaults to `nil`, for no limit.
  ///   - bytes: The maximum size of keys and encoded values together, in bytes. Defaults to `nil`, for no limit.
  ///   - policy: The behavior of a write for which there is no room. Defaults to ``Policy/refuse``.
  public init(items: Int? = nil, bytes: Int? = nil, policy: Policy = .refuse) {
    self.items = items
    self.bytes = bytes
    self.policy = policy
  }

  /// A capacity that only the disk limits.
  public static let unlimited = QueueCapacity()
}

/// The treatment of running leases when a queue is opened.
///
/// ```swift
/// // No other process has the queue, so items that the last run had leased are due immediately.
/// let queue = try await QueueStore<Event>(path: "outbox", leases: .void)
/// ```
public enum LeasesOnOpening: Sendable, Hashable, CaseIterable {
  /// Leases run until their deadlines, and their receipts stay valid. One process can receive an item and another
  /// acknowledge it.
  case kept
  /// Leases end: their items can be received again immediately, and their receipts are stale.
  ///
  /// Use this case if all consumers run in the program that opens the queue.
  case void
}
