import Larder

/// When the base has reported changes of keys, so that older copies are not used.
///
/// A report only notes a time here, because an observer must not wait for the store of the copies. A copy carries the time
/// at which its load began, so one whose load had begun before the report isn't used either, whenever it arrives.
struct ReportedTimes: Sendable {
  /// The maximum number of keys, and of ranges.
  ///
  /// If there are more, all count as reported when the last of them was.
  private static let maximumCount = (keys: 10_000, ranges: 16)

  private var keys: [StoreKey: Int64] = [:]
  private var ranges: [(range: KeyRange, time: Int64)] = []
  private var all: Int64 = .min

  /// The latest time that was noted or used, since the wall clock can be set back.
  private var latest: Int64 = .min

  /// Notes the time of a copy, or of a moment that no copy may be older than.
  mutating func note(_ time: Int64) {
    latest = max(latest, time)
  }

  /// Notes a report.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - now: The wall clock.
  mutating func note(_ change: StoreChange, at now: Int64) {
    note(now)
    switch change {
    case .key(let key):
      keys[key] = latest
      if keys.count > ReportedTimes.maximumCount.keys { note(.range(.all), at: now) }
    case .range(.all):
      (all, keys, ranges) = (latest, [:], [])
    case .range(let range):
      ranges.removeAll { range.covering($0.range) == range }
      ranges.append((range, latest))
      if ranges.count > ReportedTimes.maximumCount.ranges { note(.range(.all), at: now) }
    }
  }

  /// Returns whether a copy of a key is newer than all reports of the key.
  ///
  /// A copy of the same microsecond is not.
  ///
  /// - Parameters:
  ///   - time: The time of the copy.
  ///   - key: The key.
  func permits(_ time: Int64, of key: StoreKey) -> Bool {
    time > all && keys[key].map { time > $0 } ?? true
      && ranges.allSatisfy { !$0.range.contains(key) || time > $0.time }
  }
}
