#if HTTPCache
public import HTTPCachingRules

/// The events in an ``HTTPCache`` since it was opened, in this process.
public struct HTTPCacheStatistics: Sendable, Hashable {
  /// The number of requests.
  public internal(set) var requestCount = 0

  /// The number of requests that a stored response answered without the origin, stale ones included.
  public internal(set) var hitCount = 0

  /// The number of requests that a stale stored response answered.
  public internal(set) var staleCount = 0

  /// The number of requests that were forwarded, by reason.
  public internal(set) var forwardCounts: [CacheStatus.ForwardReason: Int] = [:]

  /// The number of requests that a stored response answered after the origin had confirmed it.
  public internal(set) var validationCount = 0

  /// The number of requests that the response to another request answered.
  public internal(set) var collapsedCount = 0

  /// The number of requests that the cache answered with 504.
  public internal(set) var refusalCount = 0

  /// The number of requests that failed, because the origin gave no response.
  public internal(set) var failureCount = 0

  /// The number of stored responses that were refreshed in the background.
  public internal(set) var refreshCount = 0

  /// The number of responses that were stored.
  public internal(set) var storedCount = 0

  /// The number of responses that were not stored, by reason, as in `CacheStatus.detail`.
  public internal(set) var notStoredCounts: [String: Int] = [:]

  /// The number of bytes of bodies that came from the store.
  public internal(set) var storedBytesRead = 0

  /// The number of bytes of bodies that came from the origin.
  public internal(set) var originBytesRead = 0

  /// The number of responses that were evicted to make room for others.
  public internal(set) var evictionCount = 0

  /// The number of bytes of these responses.
  public internal(set) var evictedBytes = 0

  /// The number of invalidations.
  public internal(set) var invalidationCount = 0

  /// The number of operations of the store that failed or exceeded their time limit.
  public internal(set) var storeFailureCount = 0

  /// The number of operations of the store that exceeded their time limit.
  public internal(set) var storeTimeoutCount = 0

  /// The number of records that could not be read.
  public internal(set) var damageCount = 0
}
#endif
