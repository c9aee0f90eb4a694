import Synchronization

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
