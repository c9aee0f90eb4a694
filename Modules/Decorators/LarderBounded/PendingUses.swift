import Larder

/// The uses of entries by this process, and those of them that are to be persisted.
///
/// This is plain state without any I/O.
struct PendingUses: Sendable {
  /// The number of uses that are persisted in one commit.
  static let batchSize = 128

  /// The maximum number of uses that wait to be persisted.
  ///
  /// Further ones only count in memory.
  static let pendingLimit = 10_000

  /// The entries that were used.
  var recent: RecentUses

  /// The keys whose uses are to be persisted, the first recorded one first.
  private(set) var pending: [StoreKey] = []
  private var firstPending: Int64 = 0
  private var isScheduled = false

  /// Creates an empty state.
  ///
  /// - Parameter interval: The time after which a further use of an entry is recorded for persisting.
  init(interval: Duration) {
    recent = RecentUses(interval: interval)
  }

  /// Records a use.
  ///
  /// A batch is due when it is full, or when its first use has waited for the interval.
  ///
  /// - Returns: Whether the caller must ensure that the next batch is taken.
  mutating func note(_ key: StoreKey, at now: Int64) -> Bool {
    if recent.note(key, at: now), pending.count < Self.pendingLimit {
      if pending.isEmpty { firstPending = now }
      pending.append(key)
    }
    guard !isScheduled, !pending.isEmpty else { return false }
    isScheduled = pending.count >= Self.batchSize || recent.isDue(at: now, after: firstPending)
    return isScheduled
  }

  /// Takes the next batch of keys whose uses are to be persisted, in the order of their uses.
  mutating func takeBatch(at now: Int64) -> [StoreKey] {
    isScheduled = false
    firstPending = now
    let batch = pending.prefix(Self.batchSize)
    pending.removeFirst(batch.count)
    // An entry can occur twice, with an interval in between. Its last use counts.
    var seen: Set<StoreKey> = []
    return batch.reversed().filter { seen.insert($0).inserted }.reversed()
  }
}
