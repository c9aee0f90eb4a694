#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// With these types, so that it can be asked for by the name `MemoryCache` alone.
extension MemoryCache where Key == Never, Value == Never {
  /// A limit in bytes for caches whose costs are bytes: a fifth of the physical memory, or a tenth where there are no
  /// more than 512 MB of it.
  ///
  /// ```swift
  /// MemoryCache<URL, [UInt8]>(costLimit: MemoryCache.recommendedCostLimit) { _, bytes in bytes.count }
  /// ```
  public static var recommendedCostLimit: Int {
    recommendedCostLimit(physicalMemory: ProcessInfo.processInfo.physicalMemory)
  }

  static func recommendedCostLimit(physicalMemory: UInt64) -> Int {
    Int(clamping: physicalMemory / (physicalMemory <= 512 << 20 ? 10 : 5))
  }
}
