import LarderCache

/// Lets a cache serve a trace.
enum Simulation {
  /// The part of all reads that found their key.
  static func hitRatio(of policy: ComparedPolicy, entries: Int, keys: [UInt64]) -> Double {
    let cache = policy.makeCache(entries: entries)
    for key in keys where cache.value(forKey: key) == nil {
      cache.setValue(key, forKey: key)
    }
    return cache.statistics.hitRatio
  }
}
