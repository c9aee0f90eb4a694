#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderBounded
import LarderCache
import LarderJSON
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// Processes that are killed while they read and write through a cache on the disk, which evicts all the time.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct TieredStoreKillTests {
  private typealias Store = TieredStore<JSONFileStore<Int>, BoundedStore<LMDBStore<[UInt8]>>>

  private static let keys = (0..<40).map { StoreKey("key\($0)") }

  private static func open(in folder: String) async throws -> Store {
    var bounds = BoundedStoreConfiguration()
    bounds.maximumShare = 1
    let cache = try await LMDBStore(path: folder + "/cache", codec: .raw, durability: .buffered)
      .bounded(bytes: 500, configuration: bounds)
    return try await JSONFileStore<Int>(path: folder + "/store.json").cached(
      in: cache, codec: .json(Int.self),
      configuration: TieredStoreConfiguration(refreshAfter: .nanoseconds(1), negativeTimeToLive: .seconds(3600)))
  }

  /// Reads, reloads and writes without end, until the process is killed after a delay in microseconds.
  private static func work(in folder: String, seed: UInt64, dyingAfter delay: Int) async throws {
    let store = try await open(in: folder)
    // The next process has a copy to use.
    _ = try await store.value(forKey: "key0")
    while try await store.cache.count(in: .all) == 0 { await Task.yield() }
    Thread.detachNewThread {
      usleep(UInt32(delay))
      kill(getpid(), SIGKILL)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<3 {
        group.addTask {
          var generator = SeededGenerator(seed: seed &+ UInt64(task))
          while true {
            let key = keys.randomElement(using: &generator) ?? "key0"
            switch Int.random(in: 0..<12, using: &generator) {
            case 0: try await store.removeValue(forKey: key)
            case 1: try await store.removeAll(in: key..<"key3")
            case 2: try await store.update(key) { $0 = ($0 ?? 0) + 1 }
            case 3: try await store.apply([.set(key, 1), .remove("key7"), .set("key8", 2)])
            case 4: try await store.setValue(.random(in: 0..<1000, using: &generator), forKey: key)
            case 5: _ = try await store.value(forKey: key, policy: .reload)
            default: _ = try await store.value(forKey: key)
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `copies agree after a kill`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "TieredStoreKillTests")
    let folder = try TemporaryFolder()
    var (hits, evictable) = (0, 0)
    for round in 0..<ConformanceSuite.killsOfProcess {
      let (path, seed) = (folder.path, generator.next())
      let delay = Int.random(in: 1_000..<150_000, using: &generator)
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = path as String, seed = seed as UInt64, delay = delay as Int] in
        try await TieredStoreKillTests.work(in: path, seed: seed, dyingAfter: delay)
      }
      let store = try await Self.open(in: path)
      let copies = try await store.cache.keys(in: .all, limit: .max)
      for key in copies {
        // With its copy, as the next process reads it.
        let value = try await store.value(forKey: key)
        let stored = try store.base.value(forKey: key)
        #expect(value == stored, "\(key), seed \(SeededGenerator.seedOfProcess), round \(round)")
      }
      hits += store.statistics().hits
      evictable += copies.count < Self.keys.count ? 1 : 0
      #expect(try await store.cache.verifyAccounting().findings == [])
      try await store.close()
    }
    #expect(hits > 0 && evictable > 0)
    print("killed \(ConformanceSuite.killsOfProcess) cached stores, whose next processes used \(hits) copies")
  }
}
#endif
