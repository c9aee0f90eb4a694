import Larder
import Testing

@testable import LarderCache

/// The memory of a cache as it is filled, and its cost.
@Suite struct MemoryCacheGrowthTests {
  @Test func `any limit is accepted`() {
    for (entryLimit, costLimit) in [(Int.max, nil), (.max, .max), (nil, .max), (1 << 30, 10)] as [(Int?, Int?)] {
      let cache = MemoryCache<Int, Int>(entryLimit: entryLimit, costLimit: costLimit, cost: { _, value in value })
      for number in 0..<100 { cache.setValue(number % 3, forKey: number) }
      #expect(costLimit == 10 ? cache.totalCost <= 10 : cache.totalCost == 99)
      #expect(cache.entryLimit == entryLimit)
    }
    #expect(MemoryCache<Int, Int>().entryLimit == 10_000)
  }

  @Test func `a cost limit does not limit the count`() {
    let cache = MemoryCache<Int, Int>(costLimit: 50_000, cost: { _, _ in 1 })
    for number in 0..<60_000 { cache.setValue(number, forKey: number) }
    #expect(cache.count == 50_000)
    #expect((0..<60_000).count { cache.peekValue(forKey: $0) == $0 } == 50_000)
  }

  @Test(arguments: EvictionPolicy.allCases) func `grows as it is filled`(_ policy: EvictionPolicy) {
    let cache = MemoryCache<Int, Int>(entryLimit: 100_000, policy: policy)
    for round in 0..<2 {
      for number in 0..<100_000 { cache.setValue(number + round, forKey: number) }
      #expect((0..<100_000).allSatisfy { cache.value(forKey: $0) == $0 + round })
    }
    for number in stride(from: 0, to: 100_000, by: 2) { cache.removeValue(forKey: number) }
    #expect(cache.count == 50_000)
    #expect((0..<100_000).allSatisfy { (cache.peekValue(forKey: $0) == nil) == $0.isMultiple(of: 2) })
  }

  /// The cost of a write does not depend on the number of stripes, which concurrent readers use.
  @Test(arguments: [5000, 100_000]) func `a write processes the reads of at most two stripes`(_ entryLimit: Int) {
    let cache = MemoryCache<Int, Int>(entryLimit: entryLimit)
    for number in 0..<entryLimit { cache.setValue(number, forKey: number) }
    func stripesWithReads() -> Int {
      (0..<cache.table.stripeCount).count { index in
        (cache.table.stripes + index).pointee.state.withLock { $0.reads.count > 0 }
      }
    }
    // All stripes have some reads. The full ones are empty again, and the order has counted their reads.
    for number in 0..<cache.table.stripeCount * 10 { #expect(cache.value(forKey: number) == number) }
    let before = stripesWithReads()
    #expect(before > cache.table.stripeCount / 2)
    cache.setValue(0, forKey: 0)
    #expect(stripesWithReads() >= before - 2)
    // No reads remain there while other entries are written.
    for _ in 0..<cache.table.stripeCount { cache.setValue(0, forKey: 0) }
    #expect(stripesWithReads() == 0)
  }
}
