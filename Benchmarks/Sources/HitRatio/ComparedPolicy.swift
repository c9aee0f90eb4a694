import ArgumentParser
import LarderCache

/// An eviction policy to measure: a policy of `MemoryCache`, or a yardstick.
enum ComparedPolicy: String, CaseIterable, ExpressibleByArgument {
  case lru
  case s3FIFO = "s3-fifo"
  case window1 = "window-1"
  case window20 = "window-20"
  case window50 = "window-50"
  case adaptive

  /// The name of the policy in the table.
  var title: String {
    switch self {
    case .lru: "LRU"
    case .s3FIFO: "S3-FIFO"
    case .window1: "window 1 %"
    case .window20: "window 20 %"
    case .window50: "window 50 %"
    case .adaptive: "adaptive"
    }
  }

  /// Returns the share of reads that are hits.
  ///
  /// - Parameters:
  ///   - keys: The keys, in the order of the reads.
  ///   - entries: The number of entries that the cache holds.
  func hitRatio(of keys: [UInt64], entries: Int) -> Double {
    switch self {
    case .lru: ComparedPolicy.hitRatio(of: keys, entries, .lru)
    case .adaptive: ComparedPolicy.hitRatio(of: keys, entries, .adaptive)
    case .s3FIFO: ComparedPolicy.hitRatio(of: keys, entries, S3FIFOOrder(entryLimit: entries))
    case .window1: ComparedPolicy.hitRatio(of: keys, entries, FixedWindowOrder(entryLimit: entries, share: 0.01))
    case .window20: ComparedPolicy.hitRatio(of: keys, entries, FixedWindowOrder(entryLimit: entries, share: 0.2))
    case .window50: ComparedPolicy.hitRatio(of: keys, entries, FixedWindowOrder(entryLimit: entries, share: 0.5))
    }
  }

  private static func hitRatio(of keys: [UInt64], _ entries: Int, _ policy: EvictionPolicy) -> Double {
    // No trimming, so that the result does not depend on the memory of the machine.
    let cache = MemoryCache<UInt64, UInt64>(entryLimit: entries, policy: policy, trimsUnderMemoryPressure: false)
    for key in keys where cache.value(forKey: key) == nil { cache.setValue(key, forKey: key) }
    return cache.statistics().hitRatio
  }

  private static func hitRatio(
    of keys: [UInt64], _ entries: Int, _ order: consuming some YardstickOrder & ~Copyable
  ) -> Double {
    var cache = YardstickCache(entryLimit: entries, order: order)
    var hits = 0
    for key in keys where cache.use(key) { hits += 1 }
    return keys.isEmpty ? 0 : Double(hits) / Double(keys.count)
  }
}
