/// How much a queue may hold, and what happens to a write that does not fit.
///
/// Waiting, delayed and leased items count, and dead letters too. Replacing an item by a larger value needs room as well.
public struct QueueCapacity: Sendable, Hashable {
  /// The behavior of a write for which there is no room.
  public enum Policy: Sendable, Hashable, CaseIterable {
    /// It throws `full`.
    case refuse
    /// It waits until there is room; cancelling its task ends the waiting.
    ///
    /// Waiters are served in the order in which they came. A call that takes no room, like a removal, does not wait.
    case wait
    /// Dead letters and then the oldest items are dropped for it, but never a leased one; where that is not enough it throws
    /// `full`.
    ///
    /// ``EnqueuedItem/droppedCount`` and the statistics tell how many.
    case dropOldest
  }

  /// The most items; `nil` for no limit.
  public var items: Int?

  /// The most bytes of keys and encoded values together; `nil` for no limit.
  public var bytes: Int?

  /// The behavior of a write for which there is no room.
  public var policy: Policy

  /// Makes a capacity.
  ///
  /// - Parameters:
  ///   - items: The most items; `nil`, the default, for no limit.
  ///   - bytes: The most bytes of keys and encoded values together; `nil`, the default, for no limit.
  ///   - policy: What happens to a write for which there is no room; defaults to ``Policy/refuse``.
  public init(items: Int? = nil, bytes: Int? = nil, policy: Policy = .refuse) {
    self.items = items
    self.bytes = bytes
    self.policy = policy
  }

  /// No limit but the disk.
  public static let unlimited = QueueCapacity()
}
