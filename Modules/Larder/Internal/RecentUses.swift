/// The entries that this process has used, in memory.
///
/// This is plain state without any I/O. It remembers a limited number of keys, in two generations: when the younger one is
/// full, it becomes the older one, whose keys are forgotten. Times are in microseconds since 1970.
package struct RecentUses: Sendable {
  /// The maximum number of keys in a generation.
  package static let generationSize = 20_000

  private struct Use {
    /// Whether the entry was used since it was last put into the order of use.
    var isRecent: Bool
    /// The time at which a use was last due.
    var recorded: Int64
  }

  private let interval: Int64
  private var young: [StoreKey: Use] = [:]
  private var old: [StoreKey: Use] = [:]

  /// Creates an empty state.
  ///
  /// - Parameter interval: The time after which a further use of an entry is due to be persisted.
  package init(interval: Duration) {
    self.interval = interval.microseconds
  }

  /// Returns whether a use is due to be persisted after the last one, or the clock was set back.
  package func isDue(at now: Int64, after last: Int64) -> Bool {
    let (difference, overflow) = now.subtractingReportingOverflow(last)
    return overflow || difference < 0 || difference >= interval
  }

  /// Records a use.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - persisted: The time of the last use that was persisted, or `nil` if it is unknown, so that the first use is due.
  ///   - now: The current time.
  /// - Returns: Whether the use is due to be persisted.
  package mutating func note(_ key: StoreKey, persisted: Int64? = nil, at now: Int64) -> Bool {
    let last = young[key] ?? old[key]
    let recorded = last?.recorded ?? persisted
    let isDue = recorded.map { self.isDue(at: now, after: $0) } ?? true
    guard isDue || last?.isRecent != true else { return false }
    if young[key] == nil, young.count >= Self.generationSize { (old, young) = (young, [:]) }
    young[key] = Use(isRecent: true, recorded: isDue ? now : recorded ?? now)
    return isDue
  }

  /// Returns whether an entry was used since it was last put into the order of use.
  package func isRecent(_ key: StoreKey) -> Bool { (young[key] ?? old[key])?.isRecent == true }

  /// Records that an entry was put into the order of use at its current place.
  package mutating func settle(_ key: StoreKey) {
    young[key]?.isRecent = false
    old[key]?.isRecent = false
  }

  /// Forgets an entry that was removed.
  package mutating func forget(_ key: StoreKey) {
    young[key] = nil
    old[key] = nil
  }
}
