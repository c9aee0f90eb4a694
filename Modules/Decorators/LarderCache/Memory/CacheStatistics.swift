/// The statistics of a ``MemoryCache`` since it was created.
///
/// ```swift
/// let statistics = images.statistics()
/// print("\(statistics.hitRatio * 100) % of \(statistics.hits + statistics.misses) reads were hits")
/// ```
public struct CacheStatistics: Sendable, Hashable {
  /// The number of reads that found their key.
  public var hits = 0

  /// The number of reads that did not find their key.
  public var misses = 0

  /// The number of values stored under a new key.
  public var insertions = 0

  /// The number of values refused because their own cost exceeds the cost limit.
  public var refusals = 0

  /// The number of entries removed because another value replaced them, or was to replace them and was refused.
  public var replacements = 0

  /// The number of entries removed by a call.
  public var removals = 0

  /// The number of entries evicted to stay within the limits.
  public var evictions = 0

  /// The number of entries removed because they had expired.
  public var expirations = 0

  /// The number of entries evicted to save memory.
  public var trims = 0

  /// Creates statistics with all counts at zero.
  public init() {}

  /// The share of reads that found their key, from 0 to 1, or 0 if there were no reads.
  public var hitRatio: Double {
    let reads = hits + misses
    return reads == 0 ? 0 : Double(hits) / Double(reads)
  }

  mutating func count(_ reason: RemovalReason) {
    switch reason {
    case .removed: removals += 1
    case .replaced: replacements += 1
    case .evicted: evictions += 1
    case .expired: expirations += 1
    case .trimmed: trims += 1
    }
  }
}

/// The reason why an entry was removed from a ``MemoryCache``.
public enum RemovalReason: Sendable, Hashable, CaseIterable {
  /// It was removed by a call.
  case removed

  /// Another value replaced it, or was to replace it and was too large for the cache.
  case replaced

  /// It was evicted to stay within the limits of the cache.
  case evicted

  /// Its time to live was over.
  case expired

  /// It was evicted to save memory, by ``MemoryCache/trim(to:)`` or because the system was short of memory.
  case trimmed
}

/// The entries that were removed under the locks of a cache, to be released and reported after unlocking.
@usableFromInline
struct RemovedEntries<Key: Sendable, Value: Sendable>: Sendable {
  @usableFromInline typealias Removed = (key: Key, value: Value, reason: RemovalReason)

  // In most cases there is at most one, which needs no array.
  @usableFromInline var first: Removed?
  @usableFromInline var others: [Removed] = []

  @inlinable
  init() {}

  @inlinable
  mutating func append(_ key: Key, _ value: Value, _ reason: RemovalReason) {
    if first == nil {
      first = (key, value, reason)
    } else {
      others.append((key, value, reason))
    }
  }

  /// Reports the entries to a listener, if there is one.
  @inlinable
  func report(to listener: MemoryCache<Key, Value>.RemovalListener?) where Key: Hashable {
    guard let listener, let first else { return }
    listener(first.key, first.value, first.reason)
    for removed in others { listener(removed.key, removed.value, removed.reason) }
  }
}
