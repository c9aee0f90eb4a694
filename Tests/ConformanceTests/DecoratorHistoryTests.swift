#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderCache
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// Concurrent histories through a cache, through write-behind, and through stacks of both, in which every third read
/// reloads.
///
/// `LARDER_ROUNDS` sets the number of random histories of each.
@Suite struct DecoratorHistoryTests {
  /// A cache that uses the `reload` policy for every third read.
  private final class ReloadingStore<Base: DataStore>: PassingStore {
    typealias Value = Base.Value
    let base: CachedStore<Base>
    private let readCount = Atomic(0)

    init(_ base: CachedStore<Base>) {
      self.base = base
    }

    private var policy: LoadPolicy {
      readCount.add(1, ordering: .relaxed).newValue.isMultiple(of: 3) ? .reload : .cacheElseLoad
    }

    func value(forKey key: StoreKey) async throws -> Value? {
      try await base.value(forKey: key, policy: policy)
    }

    func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
      try await base.values(forKeys: keys, policy: policy)
    }
  }

  private static func slow() -> FaultyStore<MemoryStore<Int>> {
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 4), probability: 1)
    return MemoryStore<Int>().faulty(plan: plan)
  }

  /// Options with a small cache that keeps all kinds of entries and refreshes most of them constantly.
  private static var eager: CachedStoreConfiguration<Int> {
    var options = CachedStoreConfiguration<Int>(entryLimit: 2)
    options.negativeTimeToLive = .seconds(3600)
    options.refreshAfter = .zero
    return options
  }

  private static func writeBehind<Base: DataStore>(_ base: Base) -> WriteBehindStore<Base> {
    base.writeBehind(bounds: BatchBounds(changes: 6), maximumAge: .microseconds(5))
  }

  private static let stacks: [(name: String, open: @Sendable () -> AnyDataStore<Int>)] = [
    ("a cache", { AnyDataStore(ReloadingStore(slow().cached())) }),
    ("an eager cache", { AnyDataStore(ReloadingStore(slow().cached(eager))) }),
    ("write-behind", { AnyDataStore(writeBehind(slow())) }),
    ("write-behind over a cache", { AnyDataStore(writeBehind(ReloadingStore(slow().cached(eager)))) }),
    ("a cache over write-behind", { AnyDataStore(ReloadingStore(writeBehind(slow()).cached(eager))) }),
  ]

  @Test(arguments: stacks.indices) func `every history is linearizable`(_ index: Int) async throws {
    let (name, open) = Self.stacks[index]
    let trial = HistoryTrial(name) { _ in open() }
    try await trial.runConcurrently(rounds: ConformanceSuite.roundsOfProcess, seed: SeededGenerator.seedOfProcess)
  }
}
#endif
