import Larder
import LarderBatching
import LarderCache
import LarderExpiry
import LarderMetrics

/// Gets through more and more layers of the full stack: metrics, expiry, cache, batching, metrics, and a `MemoryStore`.
public enum FullStack {
  /// A layer of the stack.
  public struct Layer: Sendable {
    /// The name of the layer.
    public let name: String

    /// Gets through this layer and those below.
    public let workload: Workload
  }

  private typealias Stored = Expiring<Int>
  private typealias Base = MemoryStore<Expiring<Int>>

  private static let getCount = 100_000
  private static let keyCount = 1000
  private static let timeToLive = TimeToLive.after(.seconds(86_400))
  private static let keys = SampleRecords.shuffledNumbers(keyCount).map(SampleRecords.key)

  /// Reads that miss the cache, from the inside out.
  ///
  /// The first is the store alone.
  ///
  /// The cache has room for one key in a hundred, so each miss evicts another entry.
  public static let misses = [
    Layer(name: "the MemoryStore", workload: storedGets("get from a MemoryStore of entries with deadlines") { $0 }),
    Layer(name: "metrics next to the store", workload: storedGets("miss through metrics") { $0.metered() }),
    Layer(name: "batching", workload: storedGets("miss through batching and metrics") { $0.metered().batched() }),
    Layer(
      name: "the cache",
      workload: storedGets("miss through a cache, batching and metrics") { $0.metered().batched().cached(small) }),
    Layer(
      name: "expiry",
      workload: gets("miss through expiry, a cache, batching and metrics") {
        $0.metered().batched().cached(small).expiring(timeToLive)
      }),
    Layer(
      name: "metrics outside",
      workload: gets("miss through the full stack") {
        $0.metered().batched().cached(small).expiring(timeToLive).metered()
      }),
  ]

  /// Reads that hit the cache, from the inside out.
  ///
  /// The layers below the cache have no part in them.
  public static let hits = [
    Layer(
      name: "the cache", workload: storedGets("hit in the cache of the full stack") { $0.metered().batched().cached() }),
    Layer(
      name: "expiry",
      workload: gets("hit through expiry") { $0.metered().batched().cached().expiring(timeToLive) }),
    Layer(
      name: "metrics outside",
      workload: gets("hit through the full stack") {
        $0.metered().batched().cached().expiring(timeToLive).metered()
      }),
  ]

  private static let small = CachedStoreConfiguration<Stored>(entryLimit: keyCount / 100)

  private static func filledStore() async throws -> Base {
    let store = Base()
    try await store.expiring(timeToLive).apply(ChangeBatch(keys.enumerated().map { .set($1, $0) }))
    return store
  }

  private static func storedGets(
    _ name: String, _ decorate: @escaping @Sendable (Base) -> some DataStore<Stored>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try await filledStore())
      for key in keys { consume(try await store.value(forKey: key)) }
      return {
        var sum = 0
        for index in 0..<getCount { sum &+= try await store.value(forKey: keys[index % keyCount])?.value ?? 0 }
        consume(sum)
      }
    }
  }

  private static func storedPuts(
    _ name: String, _ decorate: @escaping @Sendable (Base) -> some DataStore<Stored>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try await filledStore())
      return {
        for index in 0..<getCount { try await store.setValue(Stored(index), forKey: keys[index % keyCount]) }
      }
    }
  }

  private static func gets(
    _ name: String, _ decorate: @escaping @Sendable (Base) -> some DataStore<Int>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try await filledStore())
      for key in keys { consume(try await store.value(forKey: key)) }
      return {
        var sum = 0
        for index in 0..<getCount { sum &+= try await store.value(forKey: keys[index % keyCount]) ?? 0 }
        consume(sum)
      }
    }
  }

  /// Operations with and without a meter, whose reports no backend receives.
  public static let metered: [(name: String, with: Workload, without: Workload)] = [
    (
      "metrics of a get", storedGets("metered get from a MemoryStore") { $0.metered() },
      storedGets("get from a MemoryStore of entries with deadlines") { $0 }
    ),
    (
      "metrics of a get, behind AnyDataStore",
      storedGets("metered get behind AnyDataStore") { AnyDataStore($0.metered()) },
      storedGets("get behind AnyDataStore") { AnyDataStore($0) }
    ),
    (
      "metrics of a put", storedPuts("metered put into a MemoryStore") { $0.metered() },
      storedPuts("put into a MemoryStore of entries with deadlines") { $0 }
    ),
    (
      "metrics of a block",
      Workload("measured block", operationCount: getCount) { _ in
        let meter = StoreMeter(name: "blocks")
        return { for index in 0..<getCount { meter.measure("block") { consume(index) } } }
      },
      Workload("the same block, not measured", operationCount: getCount) { _ in
        return { for index in 0..<getCount { consume(index) } }
      }
    ),
  ]
}
