import Synchronization

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

/// The counters of a ``CachedStore``, except for hits.
///
/// The `MemoryCache` counts its own hits and misses. These counters correct them if the store did not use what the
/// cache returned.
final class CachedStoreCounters: Sendable {
  /// The number of cached entries that were found and not used.
  let passedOver = Atomic(0)

  /// The number of cached entries that were used after the cache had reported a miss.
  let foundLate = Atomic(0)

  /// The number of reads that bypassed the cache.
  let reloads = Atomic(0)

  /// See ``CachedStoreStatistics/loads``.
  let loads = Atomic(0)

  /// See ``CachedStoreStatistics/loadFailures``.
  let loadFailures = Atomic(0)

  /// See ``CachedStoreStatistics/sharedLoads``.
  let sharedLoads = Atomic(0)

  /// Returns the statistics of the store.
  ///
  /// - Parameter cache: The statistics of its `MemoryCache`.
  func statistics(of cache: CacheStatistics) -> CachedStoreStatistics {
    let wrongHits = passedOver.load(ordering: .relaxed) - foundLate.load(ordering: .relaxed)
    var statistics = CachedStoreStatistics()
    statistics.hits = cache.hits - wrongHits
    statistics.misses = cache.misses + wrongHits + reloads.load(ordering: .relaxed)
    statistics.loads = loads.load(ordering: .relaxed)
    statistics.loadFailures = loadFailures.load(ordering: .relaxed)
    statistics.sharedLoads = sharedLoads.load(ordering: .relaxed)
    statistics.evictions = cache.evictions
    return statistics
  }
}
