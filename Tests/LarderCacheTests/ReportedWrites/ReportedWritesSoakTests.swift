#if LMDB
import Larder
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// Counters that many tasks raise through a cache and beside it.
///
/// A counter only grows, so a read is stale if its result is less than that of a write that returned before.
@Suite(.timeLimit(.minutes(60))) struct ReportedWritesSoakTests {
  /// Raises counters by 1 in one step, and returns their values.
  private typealias Raise = @Sendable (_ keys: [StoreKey]) async throws -> [Int]

  /// The values of the counters when the latest writes returned.
  private final class Returned: Sendable {
    private let values = Locked<[StoreKey: Int]>([:])

    func note(_ keys: [StoreKey], _ raised: [Int]) {
      values.withLock { values in
        for (key, value) in zip(keys, raised) { values[key] = max(value, values[key] ?? 0) }
      }
    }

    func values(_ keys: [StoreKey]) -> [Int] {
      values.withLock { values in keys.map { values[$0] ?? 0 } }
    }
  }

  private static let keys: [StoreKey] = ["a", "b", "c"]

  private static func raise(_ store: some DataStore<Int>) -> Raise {
    { keys in
      try await store.update(keys) { slots in
        slots.assign(slots.map { ($0 ?? 0) + 1 })
        return slots.map { $0 ?? 0 }
      }
    }
  }

  private func run(_ caches: [CachedStore<some DataStore<Int>>], beside writers: [Raise], _ purpose: String)
    async throws
  {
    let seed = SeededGenerator.seedOfProcess
    let returned = Returned()
    let stepCount = 100 * ConformanceSuite.roundsOfProcess
    let raises = caches.flatMap { [Self.raise($0), Self.raise($0)] } + writers
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, raise) in raises.enumerated() {
        group.addTask {
          var generator = SeededGenerator(seed: seed, purpose: "\(purpose), writer \(index)")
          for _ in 0..<stepCount {
            let keys = Array(Self.keys.shuffled(using: &generator).prefix(Int.random(in: 1...2, using: &generator)))
            returned.note(keys, try await raise(keys))
            if Bool.random(using: &generator) { await Task.yield() }
          }
        }
      }
      for (index, cache) in (caches + caches).enumerated() {
        group.addTask {
          var generator = SeededGenerator(seed: seed, purpose: "\(purpose), reader \(index)")
          for _ in 0..<4 * stepCount {
            let keys = Array(Self.keys.shuffled(using: &generator).prefix(Int.random(in: 1...2, using: &generator)))
            let least = returned.values(keys)
            let found = try await cache.values(forKeys: keys).map { $0 ?? 0 }
            #expect(
              zip(found, least).allSatisfy { $0 >= $1 }, "\(found) after \(least), LARDER_SEED=\(seed)")
            if Bool.random(using: &generator) { await Task.yield() }
          }
        }
      }
      try await group.waitForAll()
    }
    for cache in caches {
      // Background loads may still be running.
      while !cache.cache.isIdle { await Task.yield() }
      let stored = try await cache.base.values(forKeys: Self.keys)
      #expect(try await cache.values(forKeys: Self.keys) == stored, "LARDER_SEED=\(seed)")
      #expect(stored == returned.values(Self.keys))
    }
  }

  private static var refreshing: CachedStoreConfiguration<Int> {
    var configuration = CachedStoreConfiguration<Int>()
    configuration.refreshAfter = .zero
    return configuration
  }

  @Test(arguments: [1, 2]) func `no read is older than a write beside the cache`(_ cacheCount: Int) async throws {
    let shared = MemoryStore<Int>().observable()
    let caches = (0..<cacheCount).map { number in
      var plan = FaultPlan()
      plan.schedule(.yields(upTo: 3), probability: 0.7)
      return shared.faulty(plan: plan).cached(number == 0 ? CachedStoreConfiguration() : Self.refreshing)
    }
    try await run(caches, beside: [Self.raise(shared), Self.raise(shared)], "memory with \(cacheCount)")
  }

  #if LMDB
  @Test func `no read is older than a transaction`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("counters"), durability: .buffered)
    let store = try await LMDBStore<Int>(in: environment, name: "counters")
    let other = try await LMDBStore<Int>(in: environment, name: "counters")
    let transact: Raise = { keys in
      try await environment.write { transaction in
        try keys.map { key in
          let value = (try transaction.value(forKey: key, in: store) ?? 0) + 1
          // Reported as a range and as a key.
          if value.isMultiple(of: 3) { try transaction.removeAll(in: .only(key), of: store) }
          try transaction.setValue(value, forKey: key, in: store)
          return value
        }
      }
    }
    try await run([store.cached(), other.cached(Self.refreshing)], beside: [transact, Self.raise(other)], "LMDB")
  }
  #endif
}
#endif
