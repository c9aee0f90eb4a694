import Larder
import LarderCBOR
import LarderCache
import LarderLMDB

/// Hits, misses and writes of a `CachedStore`, next to the bare store and the `MemoryCache` inside.
enum CachedStores {
  private static let getCount = 100_000
  private static let keyCount = 1000

  static let comparisons = [
    Comparison(
      hotKey("get of one record from a cached LMDBStore") { $0.cached() },
      beside: [Comparison.Yardstick(hotKey("the same without the cache") { $0 }, limit: 1.0 / 5)]),
    Comparison(
      hits, beside: [Comparison.Yardstick(cacheHits), Comparison.Yardstick(gets("get from a MemoryStore") { $0 })]),
    Comparison(
      writes("put into a cached MemoryStore") { $0.cached() },
      beside: [Comparison.Yardstick(writes("put into a MemoryStore") { $0 })]),
    Comparison(
      gets("miss in a full CachedStore") { $0.cached(full) },
      beside: [Comparison.Yardstick(gets("get from a MemoryStore") { $0 })]),
    Comparison(
      misses("get of a missing key from a cached MemoryStore") { $0.cached() },
      beside: [Comparison.Yardstick(misses("get of a missing key from a MemoryStore") { $0 })]),
  ]

  private static func hotKey(
    _ name: String, _ decorate: @escaping @Sendable (LMDBStore<User>) -> some DataStore<User>
  ) -> Workload {
    Workload(name, operationCount: getCount) { folder in
      let base = try await LMDBStore<User>(path: folder.newPath())
      try await base.apply(ChangeBatch((0..<keyCount).map { .set(SampleRecords.key($0), User(number: $0)) }))
      let store = decorate(base)
      let key = SampleRecords.key(keyCount / 2)
      return {
        var sum = 0
        for _ in 0..<getCount { sum &+= try await store.value(forKey: key)?.name.utf8.count ?? 0 }
        consume(sum)
      }
    }
  }

  /// The keys are read in turn, so every key is evicted before it is read again.
  private static var full: CachedStoreConfiguration<Int> {
    var options = CachedStoreConfiguration<Int>(entryLimit: keyCount / 10)
    options.policy = .lru
    return options
  }

  private static let hits = gets("hit in a CachedStore") { $0.cached() }

  private static let cacheHits = Workload("hit in a MemoryCache", operationCount: getCount) { _ in
    let cache = MemoryCache<StoreKey, Int>()
    let keys = SampleRecords.shuffledNumbers(keyCount).map(SampleRecords.key)
    for (number, key) in keys.enumerated() { cache.setValue(number, forKey: key) }
    return {
      var sum = 0
      for index in 0..<getCount { sum &+= cache.value(forKey: keys[index % keyCount]) ?? 0 }
      consume(sum)
    }
  }

  private static func gets(
    _ name: String, _ decorate: @escaping @Sendable (MemoryStore<Int>) -> some DataStore<Int>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try InMemory.filledStore(count: keyCount))
      let keys = SampleRecords.shuffledNumbers(keyCount).map(SampleRecords.key)
      for key in keys { consume(try await store.value(forKey: key)) }
      return {
        var sum = 0
        for index in 0..<getCount { sum &+= try await store.value(forKey: keys[index % keyCount]) ?? 0 }
        consume(sum)
      }
    }
  }

  private static func writes(
    _ name: String, _ decorate: @escaping @Sendable (MemoryStore<Int>) -> some DataStore<Int>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try InMemory.filledStore(count: keyCount))
      let keys = SampleRecords.shuffledNumbers(keyCount).map(SampleRecords.key)
      return {
        for index in 0..<getCount { try await store.setValue(index, forKey: keys[index % keyCount]) }
      }
    }
  }

  /// The cost of a load alone, because the cache does not remember missing keys by default.
  private static func misses(
    _ name: String, _ decorate: @escaping @Sendable (MemoryStore<Int>) -> some DataStore<Int>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try InMemory.filledStore(count: keyCount))
      let keys = (keyCount..<2 * keyCount).map(SampleRecords.key)
      return {
        var count = 0
        for index in 0..<getCount where try await store.value(forKey: keys[index % keyCount]) == nil { count += 1 }
        consume(count)
      }
    }
  }
}
