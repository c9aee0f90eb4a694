import Larder

/// The uses of entries by this process, in memory.
///
/// This is plain state without any I/O. It remembers a limited number of keys, in two generations: when the younger one is
/// full, it becomes the older one, whose keys are forgotten.
struct RecentUses: Sendable {
  /// The maximum number of keys in a generation.
  static let generationSize = 20_000

  /// The number of uses that are persisted in one commit.
  static let batchSize = 128

  /// The maximum number of uses that wait to be persisted.
  ///
  /// Further ones only count in memory.
  static let pendingLimit = 10_000

  private struct Use {
    /// Whether the entry was used since it was last put into the order of use.
    var isRecent: Bool
    /// The time at which the use was last recorded for persisting.
    var recorded: Int64
  }

  private let intervalMicroseconds: Int64
  private var young: [StoreKey: Use] = [:]
  private var old: [StoreKey: Use] = [:]

  /// The keys whose uses are to be persisted, the first recorded one first.
  private(set) var pending: [StoreKey] = []
  private var firstPending: Int64 = 0
  private var isScheduled = false

  /// Creates an empty state.
  ///
  /// - Parameter interval: The time after which a further use of an entry is recorded for persisting.
  init(interval: Duration) {
    let (seconds, attoseconds) = interval.components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    intervalMicroseconds = overflow ? .max : whole.addingReportingOverflow(attoseconds / 1_000_000_000_000).partialValue
  }

  /// Whether a use is due to be persisted after the last one.
  ///
  /// It is due if the clock was set back.
  func isDue(at now: Int64, after last: Int64) -> Bool {
    let (difference, overflow) = now.subtractingReportingOverflow(last)
    return overflow || difference < 0 || difference >= intervalMicroseconds
  }

  /// Records a use.
  ///
  /// - Returns: Whether the caller must ensure that the next batch is taken.
  mutating func note(_ key: StoreKey, at now: Int64) -> Bool {
    if var use = young[key] {
      guard !use.isRecent || isDue(at: now, after: use.recorded) else { return false }
      use.isRecent = true
      if isDue(at: now, after: use.recorded) {
        use.recorded = now
        enqueue(key, at: now)
      }
      young[key] = use
    } else if let use = old[key], !isDue(at: now, after: use.recorded) {
      insert(key, Use(isRecent: true, recorded: use.recorded))
    } else {
      insert(key, Use(isRecent: true, recorded: now))
      enqueue(key, at: now)
    }
    return schedule(at: now)
  }

  private mutating func enqueue(_ key: StoreKey, at now: Int64) {
    guard pending.count < RecentUses.pendingLimit else { return }
    if pending.isEmpty { firstPending = now }
    pending.append(key)
  }

  private mutating func insert(_ key: StoreKey, _ use: Use) {
    if young.count >= RecentUses.generationSize {
      old = young
      young = [:]
    }
    young[key] = use
  }

  /// A batch is due when it is full, or when its first use has waited for the interval.
  private mutating func schedule(at now: Int64) -> Bool {
    guard !isScheduled, !pending.isEmpty else { return false }
    guard pending.count >= RecentUses.batchSize || isDue(at: now, after: firstPending) else { return false }
    isScheduled = true
    return true
  }

  /// Takes the next batch of keys whose uses are to be persisted, in the order of their uses.
  mutating func takeBatch(at now: Int64) -> [StoreKey] {
    isScheduled = false
    firstPending = now
    let batch = pending.prefix(RecentUses.batchSize)
    pending.removeFirst(batch.count)
    // An entry can occur twice, with an interval in between. Its last use counts.
    var seen: Set<StoreKey> = []
    return batch.reversed().filter { seen.insert($0).inserted }.reversed()
  }

  /// Returns whether an entry was used since it was last put into the order of use.
  func isRecent(_ key: StoreKey) -> Bool { (young[key] ?? old[key])?.isRecent == true }

  /// Records that an entry was put into the order of use at its current place.
  mutating func settle(_ key: StoreKey) {
    young[key]?.isRecent = false
    old[key]?.isRecent = false
  }

  /// Forgets an entry that was removed.
  mutating func forget(_ key: StoreKey) {
    young[key] = nil
    old[key] = nil
  }
}
