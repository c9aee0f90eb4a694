import Testing

@testable import LarderCache

@Suite struct RecommendedCostLimitTests {
  @Test func `is a fraction of the memory`() {
    #expect(MemoryCache.recommendedCostLimit(physicalMemory: 512 << 20) == (512 << 20) / 10)
    #expect(MemoryCache.recommendedCostLimit(physicalMemory: (512 << 20) + 1) == ((512 << 20) + 1) / 5)
    #expect(MemoryCache.recommendedCostLimit(physicalMemory: 100) == 10)
    #expect(MemoryCache.recommendedCostLimit > 0)
  }
}
