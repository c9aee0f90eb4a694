import ArgumentParser
@_spi(Measurement) import LarderCache

/// What decides which entry has to go, in the cache that is measured.
enum ComparedPolicy: String, CaseIterable, ExpressibleByArgument {
  case lru
  case s3FIFO = "s3-fifo"
  case window1 = "window-1"
  case window20 = "window-20"
  case window50 = "window-50"
  case adaptive

  /// What it is called in the table.
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

  func makeCache(entries: Int) -> MemoryCache<UInt64, UInt64> {
    switch self {
    case .lru: ComparedPolicy.cache(entries, .lru)
    case .s3FIFO: ComparedPolicy.cache(entries, .s3FIFO)
    case .window1: MemoryCache(entryLimit: entries, fixedWindowShare: 0.01)
    case .window20: MemoryCache(entryLimit: entries, fixedWindowShare: 0.2)
    case .window50: MemoryCache(entryLimit: entries, fixedWindowShare: 0.5)
    case .adaptive: ComparedPolicy.cache(entries, .adaptive)
    }
  }

  /// A cache that keeps what its policy says, however little memory the machine has.
  private static func cache(_ entries: Int, _ policy: EvictionPolicy) -> MemoryCache<UInt64, UInt64> {
    MemoryCache(entryLimit: entries, policy: policy, trimsUnderMemoryPressure: false)
  }
}
