/// How many items of a queue are in each state.
public struct QueueCounts: Sendable, Hashable {
  /// Items that can be received now.
  public var waiting: Int

  /// Items whose time has not come.
  public var delayed: Int

  /// Items that were received, and neither acknowledged nor released; their leases have not ended.
  public var leased: Int

  /// Dead letters.
  public var dead: Int

  /// Makes counts.
  ///
  /// - Parameters:
  ///   - waiting: Items that can be received now; defaults to 0.
  ///   - delayed: Items whose time has not come; defaults to 0.
  ///   - leased: Items that were received; defaults to 0.
  ///   - dead: Dead letters; defaults to 0.
  public init(waiting: Int = 0, delayed: Int = 0, leased: Int = 0, dead: Int = 0) {
    self.waiting = waiting
    self.delayed = delayed
    self.leased = leased
    self.dead = dead
  }

  /// The items that the queue shows as a `DataStore`: waiting, delayed and leased ones.
  public var live: Int { waiting + delayed + leased }
}
