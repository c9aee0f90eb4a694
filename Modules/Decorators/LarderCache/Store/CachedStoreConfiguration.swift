public import Larder

/// The limits and times of a ``CachedStore``.
///
/// ```swift
/// let users = store.cached(CachedStoreConfiguration(entryLimit: 50_000, negativeTimeToLive: .seconds(5)))
/// ```
///
/// ``timeToLive``, ``refreshAfter`` and ``negativeTimeToLive`` mean the same as in a ``TieredStoreConfiguration``.
public struct CachedStoreConfiguration<Value: Sendable>: Sendable {
  /// A closure that returns the cost of an entry, in a unit of your choice, such as bytes.
  ///
  /// A negative cost counts as zero.
  public typealias Cost = @Sendable (_ key: StoreKey, _ value: Value) -> Int

  /// The maximum number of cached entries.
  ///
  /// Defaults to `nil`, meaning 10,000, or as many as ``costLimit`` allows if that is set. If the limit is less
  /// than 1, nothing is cached.
  public var entryLimit: Int?

  /// The maximum total cost of the cached entries.
  ///
  /// Defaults to `nil`, to limit only their number.
  public var costLimit: Int?

  /// A closure that returns the cost of an entry.
  ///
  /// Defaults to `nil`, meaning a cost of 1. A cached missing key always costs 1.
  public var cost: Cost?

  /// The policy that decides which entries to evict.
  ///
  /// Defaults to ``EvictionPolicy/adaptive``.
  public var policy: EvictionPolicy = .adaptive

  /// The time to live of cached entries.
  ///
  /// Defaults to `nil`: ``CacheTimeToLive/unlimited``, except over a base that several programs can write to and that does
  /// not report the commits of all of them, where an entry is used for at most 60 seconds after it was read.
  ///
  /// Changes made through the cache are visible immediately in any case.
  public var timeToLive: CacheTimeToLive?

  /// The age after which reading a cached entry reloads it in the background.
  ///
  /// Defaults to `nil`, meaning never.
  ///
  /// If it is less than the ``timeToLive``, readers of keys in use need not wait for the base, whether or not its reads
  /// suspend. After a failed load, no background load begins for one second, or for this time if it is shorter. If the
  /// error concerns a single key, such as a damaged value, only that key is left alone.
  public var refreshAfter: Duration?

  /// The time that the cache remembers that the base does not have a key (negative caching).
  ///
  /// Defaults to `nil`, to turn negative caching off. The ``timeToLive`` applies, too.
  public var negativeTimeToLive: Duration?

  /// The reads while the base has not known of all commits for longer than ``maximumLag``.
  ///
  /// Defaults to ``LaggingReads/loadFromBase``. It matters only over a base that hears later of the commits of other hosts; see
  /// `StoreObservation.lag`.
  public var whenReportsLag: LaggingReads = .loadFromBase

  /// The time that a value that another host has replaced may still be read.
  ///
  /// Defaults to one second. A time shorter than that in which the base looks for commits of other hosts, as half a second
  /// for a `PostgresStore`, sends many reads to the base.
  public var maximumLag = Duration.seconds(1)

  /// A Boolean value that indicates whether entries are evicted when the system is short of memory.
  ///
  /// Defaults to `true`.
  public var trimsUnderMemoryPressure = true

  /// Creates a configuration with limits and times, and defaults for everything else.
  ///
  /// - Parameters:
  ///   - entryLimit: The maximum number of cached entries. Defaults to 10,000, or to no limit if there is a
  ///     `costLimit`.
  ///   - costLimit: The maximum total cost of the cached entries. Defaults to no limit.
  ///   - timeToLive: The time to live of cached entries. Defaults to `nil`; see the property.
  ///   - refreshAfter: The age after which reading a cached entry reloads it in the background. Defaults to never.
  ///   - negativeTimeToLive: The time that the cache remembers that the base does not have a key. Defaults to not at all.
  ///   - cost: A closure that returns the cost of an entry. Defaults to a cost of 1 for each entry.
  public init(
    entryLimit: Int? = nil, costLimit: Int? = nil, timeToLive: CacheTimeToLive? = nil, refreshAfter: Duration? = nil,
    negativeTimeToLive: Duration? = nil, cost: Cost? = nil
  ) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit
    self.timeToLive = timeToLive
    self.refreshAfter = refreshAfter
    self.negativeTimeToLive = negativeTimeToLive
    self.cost = cost
  }
}

/// The reads of a cache whose base has not known of all commits of other hosts for longer than a limit, such as
/// ``CachedStoreConfiguration/maximumLag``.
public enum LaggingReads: Sendable, Hashable, CaseIterable {
  /// They go to the base, and fail if it cannot be reached. The default.
  case loadFromBase
  /// They use cached entries, however old these are.
  case serveStale
}

/// The statistics of a ``CachedStore`` since it was created.
///
/// The counts are exact when no operation is running. While operations run, one count may be ahead of another.
public struct CachedStoreStatistics: Sendable, Hashable {
  /// The number of reads of a key that the cache answered.
  public var hits = 0

  /// The number of reads of a key that the cache could not answer.
  public var misses = 0

  /// The number of reads of the base, for one key or several, including background loads.
  public var loads = 0

  /// The number of loads that failed.
  ///
  /// A failed background load appears nowhere else.
  public var loadFailures = 0

  /// The number of reads of a key that waited for a load started by another reader.
  public var sharedLoads = 0

  /// The number of cached entries that were evicted.
  public var evictions = 0

  /// Creates statistics with all counts at zero.
  public init() {}

  /// The share of the reads of a key that the cache answered, from 0 to 1, or 0 if there were no reads.
  public var hitRatio: Double {
    let reads = hits + misses
    return reads == 0 ? 0 : Double(hits) / Double(reads)
  }
}
