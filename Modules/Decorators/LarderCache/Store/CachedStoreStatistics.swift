import Synchronization

/// What happened in a ``CachedStore`` since it was made.
///
/// The figures are exact where no operation runs; while some do, one figure may be ahead of another.
public struct CachedStoreStatistics: Sendable, Hashable {
  /// Reads of a key that were answered from the cache.
  public var hits = 0

  /// Reads of a key that the cache could not answer.
  public var misses = 0

  /// Reads of the base that were made for single keys, those behind a reader included, or for several at once.
  public var loads = 0

  /// Loads that failed.
  ///
  /// A load behind a reader that fails shows nowhere else.
  public var loadFailures = 0

  /// Reads of a key that waited for a load which another had begun.
  public var sharedLoads = 0

  /// Copies that had to make room for others.
  public var evictions = 0

  /// Makes statistics in which nothing has happened.
  public init() {}

  /// The part of all reads of a key that the cache answered, from 0 to 1; 0 where there were none.
  public var hitRatio: Double {
    let reads = hits + misses
    return reads == 0 ? 0 : Double(hits) / Double(reads)
  }
}

/// Counts what happens in a ``CachedStore``, hits excepted: the cache counts what it is asked for, and here is counted
/// where that was not what came of it.
final class CachedStoreCounters: Sendable {
  /// Copies that the cache gave and that were not used.
  let passedOver = Atomic(0)

  /// Copies that were used though the cache did not have them when it was asked.
  let foundLate = Atomic(0)

  /// Reads that did not ask the cache.
  let reloads = Atomic(0)

  /// What ``CachedStoreStatistics/loads`` is.
  let loads = Atomic(0)

  /// What ``CachedStoreStatistics/loadFailures`` is.
  let loadFailures = Atomic(0)

  /// What ``CachedStoreStatistics/sharedLoads`` is.
  let sharedLoads = Atomic(0)

  /// The statistics of the store.
  ///
  /// - Parameter cache: What the cache counted.
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
