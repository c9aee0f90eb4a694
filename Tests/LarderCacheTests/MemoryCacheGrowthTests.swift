import Synchronization
import Testing

@testable import LarderCache

/// What a cache takes as it is filled, and what that costs.
@Suite struct MemoryCacheGrowthTests {
  @Test func anyLimitMayBeGiven() {
    for (entryLimit, costLimit) in [(Int.max, nil), (.max, .max), (nil, .max), (1 << 30, 10)] as [(Int?, Int?)] {
      let cache = MemoryCache<Int, Int>(entryLimit: entryLimit, costLimit: costLimit, cost: { _, value in value })
      for number in 0..<100 { cache.setValue(number % 3, forKey: number) }
      #expect(costLimit == 10 ? cache.totalCost <= 10 : cache.totalCost == 99)
      #expect(cache.entryLimit == entryLimit)
    }
    #expect(MemoryCache<Int, Int>().entryLimit == 10_000)
  }

  @Test func whereOnlyTheCostIsLimitedTheNumberIsNot() {
    let cache = MemoryCache<Int, Int>(costLimit: 50_000, cost: { _, _ in 1 })
    for number in 0..<60_000 { cache.setValue(number, forKey: number) }
    #expect(cache.count == 50_000)
    #expect((0..<60_000).count { cache.peekValue(forKey: $0) == $0 } == 50_000)
  }

  @Test(arguments: EvictionPolicy.allCases) func growsAsItIsFilled(_ policy: EvictionPolicy) {
    let cache = MemoryCache<Int, Int>(entryLimit: 100_000, policy: policy)
    for round in 0..<2 {
      for number in 0..<100_000 { cache.setValue(number + round, forKey: number) }
      #expect((0..<100_000).allSatisfy { cache.value(forKey: $0) == $0 + round })
    }
    for number in stride(from: 0, to: 100_000, by: 2) { cache.removeValue(forKey: number) }
    #expect(cache.count == 50_000)
    #expect((0..<100_000).allSatisfy { (cache.peekValue(forKey: $0) == nil) == $0.isMultiple(of: 2) })
  }

  /// What a write costs does not hang on the number of stripes, by which threads read at the same time.
  @Test(arguments: [5000, 100_000]) func aWriteTakesTheReadsOfTwoStripesAtMost(_ entryLimit: Int) {
    let cache = MemoryCache<Int, Int>(entryLimit: entryLimit)
    for number in 0..<entryLimit { cache.setValue(number, forKey: number) }
    func stripesWithReads() -> Int {
      (0..<cache.table.stripeCount).count { index in
        (cache.table.stripes + index).pointee.state.withLock { $0.reads.count > 0 }
      }
    }
    // All stripes have some; those that are full are empty again, and the order knows of them.
    for number in 0..<cache.table.stripeCount * 10 { #expect(cache.value(forKey: number) == number) }
    let before = stripesWithReads()
    #expect(before > cache.table.stripeCount / 2)
    cache.setValue(0, forKey: 0)
    #expect(stripesWithReads() >= before - 2)
    // Nor do any stay there while others are written.
    for _ in 0..<cache.table.stripeCount { cache.setValue(0, forKey: 0) }
    #expect(stripesWithReads() == 0)
  }
}
