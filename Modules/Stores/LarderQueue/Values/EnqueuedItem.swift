public import Larder

/// The result of enqueuing an item.
public struct EnqueuedItem: Sendable, Hashable {
  /// The key under which the item is read, replaced or withdrawn: the given one, or a generated one.
  ///
  /// A generated key is text of 16 hexadecimal digits that sorts by arrival.
  public let key: StoreKey

  /// The item's place in the order of arrival; of the item that was there already, for a duplicate.
  public let sequence: UInt64

  /// Whether nothing was enqueued, since an item with that key is in the queue or was acknowledged a while ago.
  public let isDuplicate: Bool

  /// How many older items were dropped to make room; see ``QueueCapacity/Policy/dropOldest``.
  public let droppedCount: Int
}
