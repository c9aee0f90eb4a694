import Larder

/// A change to a queue: what stands in the log, and what alone changes a ``QueueLedger``.
///
/// A record about an item that is not there changes nothing: its segment was removed, since the item has gone.
enum QueueRecord: Sendable, Hashable {
  /// An item comes, or is written anew, with everything that is known of it.
  case put(ItemState)
  /// An item is handed out, or its lease extended.
  case lease(sequence: UInt64, attempts: UInt32, ItemTimer)
  /// An item waits again, at once or with a delay.
  case wait(sequence: UInt64, ItemTimer?)
  /// An item goes.
  case remove(sequence: UInt64)
  /// An item goes, and its key is remembered.
  case acknowledge(sequence: UInt64, key: StoreKey, deadline: Int64)
  /// An item becomes a dead letter.
  case die(sequence: UInt64, Death)
  /// A dead letter becomes an item again, the last in the line.
  case revive(sequence: UInt64, newSequence: UInt64, arrival: Int64)
  /// A key is remembered: written anew before the segment that said so is removed.
  case remember(key: StoreKey, sequence: UInt64, deadline: Int64)
}
