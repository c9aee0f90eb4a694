/// What happened in a ``MemoryCache`` since it was made.
public struct CacheStatistics: Sendable, Hashable {
  /// Reads that found their key.
  public var hits = 0

  /// Reads that did not find their key.
  public var misses = 0

  /// Values that were stored under a key that was not there.
  public var insertions = 0

  /// Values that were refused since each alone costs more than the cache may hold.
  public var refusals = 0

  /// Entries that another value replaced, or was to replace and was refused.
  public var replacements = 0

  /// Entries that were removed by a call.
  public var removals = 0

  /// Entries that had to make room for others.
  public var evictions = 0

  /// Entries that left since their time was over.
  public var expirations = 0

  /// Entries that were given up to save memory.
  public var trims = 0

  /// Makes statistics in which nothing has happened.
  public init() {}

  /// The part of all reads that found their key, from 0 to 1; 0 where there were none.
  public var hitRatio: Double {
    let reads = hits + misses
    return reads == 0 ? 0 : Double(hits) / Double(reads)
  }

  /// How many entries left for a reason.
  ///
  /// - Parameter reason: The reason.
  public subscript(reason: RemovalReason) -> Int {
    switch reason {
    case .removed: removals
    case .replaced: replacements
    case .evicted: evictions
    case .expired: expirations
    case .trimmed: trims
    }
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
