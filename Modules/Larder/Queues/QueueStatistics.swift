/// The number of items in a queue, and how old they are; see ``DurableQueue/queueStatistics()``.
///
/// ```swift
/// let statistics = try await queue.queueStatistics()
/// if let age = statistics.oldestAge, age > .seconds(300) { logger.warning("the oldest item is \(age) old") }
/// ```
public struct QueueStatistics: Sendable, Hashable {
  /// The number of items in each state.
  public var counts: QueueCounts

  /// The age, by the wall clock, of the oldest item that is neither acknowledged nor a dead letter; `nil` if there
  /// isn't one.
  public var oldestAge: Duration?

  /// Creates statistics.
  ///
  /// - Parameters:
  ///   - counts: The number of items in each state.
  ///   - oldestAge: The age of the oldest item. Defaults to `nil`, for an empty queue.
  public init(counts: QueueCounts, oldestAge: Duration? = nil) {
    self.counts = counts
    self.oldestAge = oldestAge
  }
}

/// The number of a queue's items in each state.
public struct QueueCounts: Sendable, Hashable {
  /// The number of items that can be received now.
  public var waiting: Int

  /// The number of items whose delay has not ended.
  public var delayed: Int

  /// The number of items that were received and neither acknowledged nor released, and whose leases have not ended.
  public var leased: Int

  /// The number of dead letters.
  public var dead: Int

  /// Creates counts.
  ///
  /// - Parameters:
  ///   - waiting: The number of items that can be received now. Defaults to 0.
  ///   - delayed: The number of delayed items. Defaults to 0.
  ///   - leased: The number of leased items. Defaults to 0.
  ///   - dead: The number of dead letters. Defaults to 0.
  public init(waiting: Int = 0, delayed: Int = 0, leased: Int = 0, dead: Int = 0) {
    self.waiting = waiting
    self.delayed = delayed
    self.leased = leased
    self.dead = dead
  }

  /// The number of items that the queue contains as a `DataStore`: waiting, delayed and leased items.
  public var live: Int { waiting + delayed + leased }
}

extension QueueCounts {
  /// The counts as figures of ``StoreStatistics``.
  public var details: [StoreStatistics.Detail] {
    [("waiting", waiting), ("delayed", delayed), ("leased", leased), ("dead", dead)].map {
      StoreStatistics.Detail(name: $0, value: Int64($1))
    }
  }
}
