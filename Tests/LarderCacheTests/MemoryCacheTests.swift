import LarderCache
import LarderTesting
import Testing

@Suite struct MemoryCacheTests {
  @Test func givesBackWhatWasStored() {
    let cache = MemoryCache<String, Int>(entryLimit: 10)
    #expect(cache.value(forKey: "a") == nil)
    cache.setValue(1, forKey: "a")
    cache.setValue(2, forKey: "b")
    #expect(cache.value(forKey: "a") == 1)
    #expect(cache.peekValue(forKey: "b") == 2)
    #expect(cache.removeValue(forKey: "a") == 1)
    #expect(cache.removeValue(forKey: "a") == nil)
    #expect(cache.count == 1)
    #expect(cache.statistics.hits == 1)
    #expect(cache.statistics.misses == 1)
    #expect(cache.statistics.insertions == 2)
    #expect(cache.statistics[.removed] == 1)
  }

  @Test func theLimitIsRecommendedForTheMemoryOfTheMachine() {
    #expect(MemoryCache.recommendedCostLimit > 10 << 20)
  }
}
