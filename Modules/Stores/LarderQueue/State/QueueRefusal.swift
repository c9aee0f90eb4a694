import Larder

/// Why a ``QueueLedger`` does not do what it is asked for; it has changed nothing that is not rolled back.
enum QueueRefusal: Error, Hashable {
  /// There is no room, now or ever.
  case full(neverFits: Bool)
  /// The disk is full: what is left is for what takes items out.
  case diskFull
  /// A receipt is not that of the lease which its item has, if it has one.
  case stale
  /// The key of a dead letter is that of a live item.
  case conflict(StoreKey)
  /// Every sequence number has been given out.
  case exhausted
}
