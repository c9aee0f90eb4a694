import Larder

/// A change to a queue: what stands in the log, and what alone changes a ``QueueLedger``.
///
/// A record about an item that is not there changes nothing: its segment was removed, since the item has gone.
enum QueueRecord: Sendable, Hashable {
  /// An item comes, or is written anew, with everything that is known of it.
  case put(ItemState)
  /// An item waits for something else: it was handed out, given back, or became a dead letter.
  ///
  /// `attempts` is `nil` if they stay as they are, which only version 1 of the format says.
  case state(sequence: UInt64, attempts: UInt32?, Standing)
  /// Items go, with all sequence numbers from one to another.
  case remove(ClosedRange<UInt64>)
  /// An item goes, and its key is remembered.
  case acknowledge(sequence: UInt64, key: StoreKey, deadline: Int64)
  /// A dead letter becomes an item again, the last in the line.
  case revive(sequence: UInt64, newSequence: UInt64, arrival: Int64)
  /// A key is remembered: written anew before the segment that said so is removed.
  case remember(key: StoreKey, sequence: UInt64, deadline: Int64)
  /// The older segments that are still needed, and where each ends: what a segment begins with. It changes no ledger.
  case segments([SegmentEnd])
}

extension QueueRecord {
  /// About how many bytes a record takes that remembers an id, the id aside.
  static let idOverhead = 16
}

/// A segment, and how many of its bytes count.
struct SegmentEnd: Sendable, Hashable {
  var number: UInt32
  var size: Int64
}
