import Larder
import LarderTesting
import Testing

@testable import LarderCache

@Suite struct MemoryCacheTests {
  /// A key with the same hash as every other one.
  private struct CollidingKey: Hashable {
    let number: Int
    func hash(into hasher: inout Hasher) {}
  }

  /// Records the reports of a cache.
  private final class Reports<Key: Sendable>: Sendable {
    private let state = Locked<[(key: Key, value: Int, reason: RemovalReason)]>([])

    func add(_ key: Key, _ value: Int, _ reason: RemovalReason) {
      state.withLock { $0.append((key, value, reason)) }
    }

    var all: [(key: Key, value: Int, reason: RemovalReason)] { state.withLock { $0 } }

    func count(_ reason: RemovalReason) -> Int { all.count { $0.reason == reason } }
  }

  // MARK: One value

  @Test(arguments: EvictionPolicy.allCases) func `returns stored values`(_ policy: EvictionPolicy) {
    let cache = MemoryCache<String, Int>(entryLimit: 10, policy: policy)
    #expect(cache.value(forKey: "a") == nil)
    cache.setValue(1, forKey: "a")
    cache.setValue(2, forKey: "b")
    cache.setValue(3, forKey: "b")
    #expect(cache.value(forKey: "a") == 1)
    #expect(cache.peekValue(forKey: "b") == 3)
    #expect(cache.peekValue(forKey: "c") == nil)
    #expect(cache.removeValue(forKey: "a") == 1)
    #expect(cache.removeValue(forKey: "a") == nil)
    #expect(cache.count == 1)
    #expect(cache.totalCost == 1)
    var expected = CacheStatistics()
    expected.hits = 1
    expected.misses = 1
    expected.insertions = 2
    expected.replacements = 1
    expected.removals = 1
    #expect(cache.statistics() == expected)
    #expect(cache.statistics().hitRatio == 0.5)
  }

  @Test func `distinguishes keys with equal hashes`() {
    let cache = MemoryCache<CollidingKey, Int>(entryLimit: 100)
    for number in 0..<100 { cache.setValue(number, forKey: CollidingKey(number: number)) }
    for number in stride(from: 0, to: 100, by: 3) {
      #expect(cache.removeValue(forKey: CollidingKey(number: number)) == number)
    }
    for number in 0..<100 {
      #expect(cache.value(forKey: CollidingKey(number: number)) == (number % 3 == 0 ? nil : number))
    }
  }

  @Test func `a value may be nil`() {
    let cache = MemoryCache<String, Int?>(entryLimit: 2)
    cache.setValue(nil, forKey: "a")
    #expect(cache.value(forKey: "a") == .some(nil))
    #expect(cache.value(forKey: "b") == .none)
    cache.setValue(1, forKey: "a")
    #expect(cache.statistics().replacements == 1)
    cache.setValue(nil, forKey: "a")
    #expect(cache.removeValue(forKey: "a") == .some(nil))
    #expect(cache.count == 0)
  }

  // MARK: Limits

  @Test(arguments: EvictionPolicy.allCases) func staysWithinItsLimits(_ policy: EvictionPolicy) {
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "staysWithinItsLimits \(policy)")
    for (entryLimit, costLimit) in [(1, 20), (7, 1_000_000), (100, 300), (1000, 300), (300, 3000)] {
      let reports = Reports<Int>()
      let cache = MemoryCache<Int, Int>(
        entryLimit: entryLimit, costLimit: costLimit, policy: policy, cost: { _, value in value % 20 },
        onRemoval: { reports.add($0, $1, $2) })
      // The last value of each key. A cache may evict it, but never return another one.
      var model: [Int: Int] = [:]
      for step in 0..<5_000 {
        let key = Int.random(in: 0..<entryLimit * 2, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
          let value = step
          cache.setValue(value, forKey: key)
          model[key] = value
        case 4:
          let value = cache.removeValue(forKey: key)
          #expect(value == nil || value == model[key], "LARDER_SEED=\(seed)")
          model[key] = nil
        case 5 where step % 250 == 0:
          cache.trim(to: costLimit / 2)
          #expect(cache.totalCost <= costLimit / 2, "LARDER_SEED=\(seed)")
        default:
          let value = cache.value(forKey: key)
          #expect(value == nil || value == model[key], "LARDER_SEED=\(seed)")
        }
        guard cache.count <= entryLimit, cache.totalCost <= costLimit else {
          Issue.record("step \(step): \(cache.count) entries, \(cache.totalCost) cost, LARDER_SEED=\(seed)")
          return
        }
      }
      let present = model.filter { cache.peekValue(forKey: $0.key) == $0.value }
      #expect(cache.count == present.count)
      #expect(cache.totalCost == present.values.reduce(0) { $0 + $1 % 20 })
      let statistics = cache.statistics()
      #expect(statistics.insertions == cache.count + reports.all.count - statistics.replacements)
      for reason in RemovalReason.allCases {
        #expect(statistics.count(of: reason) == reports.count(reason), "\(reason)")
      }
      #expect(statistics.evictions > 0)
      #expect(statistics.hits > 0)
      cache.removeAll()
      #expect(cache.count == 0)
      #expect(cache.totalCost == 0)
    }
  }

  @Test(arguments: EvictionPolicy.allCases) func `fills to its limit`(_ policy: EvictionPolicy) {
    let cache = MemoryCache<Int, Int>(entryLimit: 1000, policy: policy)
    for number in 0..<1000 { cache.setValue(number, forKey: number) }
    #expect(cache.count == 1000)
    #expect(cache.statistics().evictions == 0)
    for number in 1000..<5000 { cache.setValue(number, forKey: number) }
    #expect(cache.count == 1000)
    #expect(cache.statistics().evictions == 4000)
  }

  @Test(arguments: EvictionPolicy.allCases) func `an oversized value evicts nothing and leaves no old value`(
    _ policy: EvictionPolicy
  ) {
    let reports = Reports<String>()
    let cache = MemoryCache<String, Int>(
      costLimit: 10, policy: policy, cost: { _, value in value }, onRemoval: { reports.add($0, $1, $2) })
    cache.setValue(3, forKey: "a")
    cache.setValue(4, forKey: "b")
    cache.setValue(11, forKey: "a")
    #expect(cache.peekValue(forKey: "a") == nil)
    #expect(cache.peekValue(forKey: "b") == 4)
    cache.setValue(12, forKey: "c")
    #expect(cache.count == 1)
    #expect(cache.statistics().refusals == 2)
    #expect(reports.all.map(\.value) == [3])
    #expect(reports.all.map(\.reason) == [.replaced])
    cache.setValue(10, forKey: "b")
    #expect(cache.peekValue(forKey: "b") == 10)
  }

  @Test(arguments: [0, -1]) func `a limit of zero keeps nothing`(_ entryLimit: Int) {
    let cache = MemoryCache<String, Int>(entryLimit: entryLimit)
    cache.setValue(1, forKey: "a")
    #expect(cache.value(forKey: "a") == nil)
    #expect(cache.count == 0)
    #expect(cache.statistics().refusals == 1)
  }

  @Test func `negative costs count as zero`() {
    let cache = MemoryCache<String, Int>(costLimit: 10, cost: { _, value in value })
    cache.setValue(-5, forKey: "a")
    cache.setValue(10, forKey: "b")
    #expect(cache.totalCost == 10)
    #expect(cache.count == 2)
  }

  @Test(arguments: EvictionPolicy.allCases, [nil, Int.max, .max - 1])
  func `overflowing costs are handled safely`(_ policy: EvictionPolicy, _ costLimit: Int?) {
    let cache = MemoryCache<Int, Int>(
      entryLimit: 100, costLimit: costLimit, policy: policy, cost: { _, value in value })
    for number in 0..<300 { cache.setValue(.max - 1, forKey: number) }
    #expect(cache.count == 100)
    for number in 0..<300 { cache.setValue(.max - 1, forKey: number % 100) }
    #expect(cache.totalCost <= costLimit ?? .max)
    #expect(cache.totalCost > .max / 2)
    cache.trim(to: .max / 4)
    #expect(cache.totalCost <= .max / 4)
    #expect(cache.count > 10)
  }

  // MARK: Order

  @Test func `lru keeps the most recently used entries`() {
    let cache = MemoryCache<Int, Int>(entryLimit: 3, policy: .lru)
    for number in 1...3 { cache.setValue(number, forKey: number) }
    #expect(cache.value(forKey: 1) == 1)
    #expect(cache.peekValue(forKey: 2) == 2)
    cache.setValue(4, forKey: 4)
    #expect(cache.peekValue(forKey: 2) == nil)
    #expect(cache.peekValue(forKey: 1) == 1)
  }

  @Test func `a scan leaves frequently used entries`() {
    let cache = MemoryCache<Int, Int>(entryLimit: 100)
    for _ in 0..<5 {
      for number in 0..<50 where cache.value(forKey: number) == nil { cache.setValue(number, forKey: number) }
    }
    for number in 1000..<2000 { cache.setValue(number, forKey: number) }
    #expect((0..<50).count { cache.peekValue(forKey: $0) != nil } >= 48)
  }

  // MARK: Removal

  @Test func `removes entries that match a condition`() {
    let reports = Reports<Int>()
    let cache = MemoryCache<Int, Int>(entryLimit: 1000, onRemoval: { reports.add($0, $1, $2) })
    for number in 0..<1000 { cache.setValue(-number, forKey: number) }
    // The condition may use the cache.
    cache.removeAll { cache.peekValue(forKey: $0) ?? 0 < -499 }
    #expect(cache.count == 500)
    #expect(Set(reports.all.map(\.key)) == Set(500..<1000))
    #expect(reports.count(.removed) == 500)
    cache.removeAll()
    #expect(cache.count == 0)
    #expect(reports.count(.removed) == 1000)
  }

  @Test func `trims to a cost`() {
    let reports = Reports<Int>()
    let cache = MemoryCache<Int, Int>(
      entryLimit: 1000, policy: .lru, cost: { _, _ in 3 }, onRemoval: { reports.add($0, $1, $2) })
    for number in 0..<1000 { cache.setValue(number, forKey: number) }
    cache.trim(to: 1000)
    #expect(cache.totalCost == 999)
    #expect(reports.count(.trimmed) == 667)
    #expect((667..<1000).allSatisfy { cache.peekValue(forKey: $0) == $0 })
    cache.trim(to: 1000)
    #expect(cache.count == 333)
    cache.trim(to: -1)
    #expect(cache.count == 0)
  }

  @Test func `trimming below zero removes free entries too`() {
    let cache = MemoryCache<Int, Int>(entryLimit: 1000, cost: { _, _ in 0 })
    for number in 0..<1000 { cache.setValue(number, forKey: number) }
    cache.trim(to: 0)
    #expect(cache.count == 1000)
    cache.trim(to: -1)
    #expect(cache.count == 0)
  }

  // MARK: Expiry

  @Test func `expires after writing`() {
    let clock = ManualClock()
    let reports = Reports<String>()
    let cache = MemoryCache<String, Int>(
      timeToLive: .afterWrite(.seconds(10)), clock: clock, onRemoval: { reports.add($0, $1, $2) })
    cache.setValue(1, forKey: "a")
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(cache.value(forKey: "a") == 1)
    clock.advance(by: .nanoseconds(1))
    #expect(cache.peekValue(forKey: "a") == nil)
    #expect(cache.count == 1)
    #expect(cache.value(forKey: "a") == nil)
    #expect(cache.count == 0)
    #expect(reports.all.map(\.reason) == [.expired])
    cache.setValue(2, forKey: "a")
    clock.advance(by: .seconds(9))
    cache.setValue(3, forKey: "a")
    clock.advance(by: .seconds(9))
    #expect(cache.value(forKey: "a") == 3)
    clock.advance(by: .seconds(1))
    #expect(cache.removeValue(forKey: "a") == nil)
    #expect(reports.all.map(\.reason) == [.expired, .replaced, .expired])
    #expect(cache.statistics().hits == 2)
    #expect(cache.statistics().misses == 1)
  }

  @Test func `expires after the last use`() {
    let clock = ManualClock()
    let cache = MemoryCache<String, Int>(timeToLive: .afterAccess(.seconds(10)), clock: clock)
    cache.setValue(1, forKey: "a")
    for _ in 0..<5 {
      clock.advance(by: .seconds(9))
      #expect(cache.value(forKey: "a") == 1)
    }
    clock.advance(by: .seconds(9))
    // A peek does not count as a use.
    #expect(cache.peekValue(forKey: "a") == 1)
    clock.advance(by: .seconds(1))
    #expect(cache.value(forKey: "a") == nil)
  }

  @Test func `the shorter time to live counts`() {
    let clock = ManualClock()
    let timeToLive = CacheTimeToLive(afterWrite: .seconds(15), afterAccess: .seconds(10))
    let cache = MemoryCache<String, Int>(timeToLive: timeToLive, clock: clock)
    cache.setValue(1, forKey: "a")
    cache.setValue(1, forKey: "b")
    clock.advance(by: .seconds(9))
    #expect(cache.value(forKey: "a") == 1)
    clock.advance(by: .seconds(5))
    #expect(cache.value(forKey: "a") == 1)
    #expect(cache.value(forKey: "b") == nil)
    clock.advance(by: .seconds(1))
    #expect(cache.value(forKey: "a") == nil)
  }

  @Test(arguments: [CacheTimeToLive.afterWrite(.seconds(10)), .afterAccess(.seconds(10))])
  func `writes gradually remove expired entries`(_ timeToLive: CacheTimeToLive) {
    let clock = ManualClock()
    let cache = MemoryCache<Int, Int>(entryLimit: 1000, timeToLive: timeToLive, clock: clock)
    for number in 0..<100 { cache.setValue(number, forKey: number) }
    clock.advance(by: .seconds(10))
    for number in 100..<150 { cache.setValue(number, forKey: number) }
    #expect(cache.count == 50)
    #expect(cache.statistics().expirations == 100)
  }

  @Test func `removes all expired entries`() {
    let clock = ManualClock()
    let cache = MemoryCache<Int, Int>(entryLimit: 1000, timeToLive: .afterAccess(.seconds(10)), clock: clock)
    for number in 0..<1000 { cache.setValue(number, forKey: number) }
    clock.advance(by: .seconds(5))
    for number in stride(from: 0, to: 1000, by: 2) { #expect(cache.value(forKey: number) == number) }
    clock.advance(by: .seconds(5))
    #expect(cache.count == 1000)
    cache.removeExpired()
    #expect(cache.count == 500)
    #expect((0..<1000).allSatisfy { (cache.peekValue(forKey: $0) != nil) == $0.isMultiple(of: 2) })
  }

  // MARK: Releasing

  /// A value that uses its cache when it is released.
  private final class Tenant: Sendable {
    let cache: MemoryCache<Int, Tenant>?

    init(_ cache: MemoryCache<Int, Tenant>?) {
      self.cache = cache
    }

    deinit {
      guard let cache else { return }
      cache.setValue(Tenant(nil), forKey: -1)
      _ = cache.value(forKey: -1)
      cache.removeValue(forKey: -1)
    }
  }

  @Test(.timeLimit(.minutes(60))) func `values are released outside all locks`() {
    let cache = MemoryCache<Int, Tenant>(entryLimit: 4, policy: .lru)
    for number in 0..<10 { cache.setValue(Tenant(cache), forKey: number) }
    for number in 0..<10 { cache.setValue(Tenant(cache), forKey: number) }
    cache.setValue(Tenant(cache), forKey: 9)
    cache.removeValue(forKey: 9)
    cache.trim(to: 1)
    cache.removeAll()
    let statistics = cache.statistics()
    #expect(cache.count == 0)
    // Each value created here uses the cache when it is released.
    #expect(statistics.hits + statistics.misses == 21)
  }

  @Test(.timeLimit(.minutes(60))) func `the listener may use the cache`() {
    let holder = Locked<MemoryCache<Int, Int>?>(nil)
    let cache = MemoryCache<Int, Int>(
      entryLimit: 4,
      onRemoval: { key, value, reason in
        guard reason == .evicted, key >= 0 else { return }
        holder.withLock { $0 }?.setValue(value, forKey: -1 - key % 2)
      })
    holder.withLock { $0 = cache }
    for number in 0..<100 { cache.setValue(number, forKey: number) }
    #expect(cache.count == 4)
    holder.withLock { $0 = nil }
  }

  @Test func `releases its values with itself`() {
    final class Value: Sendable {}
    weak var kept: Value?
    do {
      let cache = MemoryCache<Int, Value>(entryLimit: 4)
      let value = Value()
      kept = value
      for number in 0..<4 { cache.setValue(value, forKey: number) }
      cache.removeValue(forKey: 2)
    }
    #expect(kept == nil)
  }

  // MARK: Threads

  @Test(arguments: EvictionPolicy.allCases) func concurrentUseIsSafe(_ policy: EvictionPolicy) async {
    let seed = SeededGenerator.seedOfProcess
    let reports = Reports<Int>()
    let clock = ManualClock()
    let cache = MemoryCache<Int, [Int]>(
      entryLimit: 200, costLimit: 500, policy: policy, timeToLive: .afterAccess(.milliseconds(50)), clock: clock,
      cost: { $1[1] % 4 }, onRemoval: { reports.add($0, $1[1], $2) })
    await withTaskGroup { group in
      for number in 0..<4 {
        group.addTask {
          var random = SeededGenerator(seed: seed, purpose: "concurrentUseIsSafe \(policy) \(number)")
          for step in 0..<10_000 {
            let key = Int.random(in: 0..<400, using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<30: cache.setValue([key, step], forKey: key)
            case 30..<35: cache.removeValue(forKey: key)
            case 35 where step % 100 == 0: cache.trim(to: 100)
            case 36 where step % 100 == 0: cache.removeAll { $0 < 100 }
            case 37: clock.advance(by: .milliseconds(1))
            default:
              let value = cache.value(forKey: key)
              #expect(value == nil || value?[0] == key, "LARDER_SEED=\(seed)")
            }
          }
        }
      }
    }
    let statistics = cache.statistics()
    #expect(cache.count <= 200)
    #expect(cache.totalCost <= 500)
    #expect(statistics.insertions == cache.count + reports.all.count - statistics.replacements)
    for reason in RemovalReason.allCases { #expect(statistics.count(of: reason) == reports.count(reason), "\(reason)") }
    cache.removeAll()
    #expect(cache.count == 0)
    #expect(cache.totalCost == 0)
  }
}

extension CacheStatistics {
  fileprivate func count(of reason: RemovalReason) -> Int {
    switch reason {
    case .removed: removals
    case .replaced: replacements
    case .evicted: evictions
    case .expired: expirations
    case .trimmed: trims
    }
  }
}
