import Larder
import LarderBatching
import LarderCache
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// What tasks see at the same time through a cache, through writing behind, and through stacks of both, where every
/// third read reloads; `LARDER_ROUNDS` says how many random histories of each there are.
@Suite struct DecoratorHistoryTests {
  /// A cache whose readers want what the base has now, every third time.
  private final class ReloadingStore<Base: DataStore>: ForwardingDecorator {
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

  /// All kinds of copies, few of them, and most of them loaded anew all the time.
  private static var eager: CachedStoreOptions<Int> {
    var options = CachedStoreOptions<Int>(entryLimit: 2)
    options.missingLifetime = .seconds(3600)
    options.refreshAge = .zero
    return options
  }

  private static func behind<Base: DataStore>(_ base: Base) -> WriteBehindStore<Base> {
    base.writeBehind(bounds: BatchBounds(changes: 6), maximumAge: .microseconds(5))
  }

  private static let stacks: [(name: String, open: @Sendable () -> AnyDataStore<Int>)] = [
    ("a cache", { AnyDataStore(ReloadingStore(slow().cached())) }),
    ("an eager cache", { AnyDataStore(ReloadingStore(slow().cached(eager))) }),
    ("writing behind", { AnyDataStore(behind(slow())) }),
    ("writing behind over a cache", { AnyDataStore(behind(ReloadingStore(slow().cached(eager)))) }),
    ("a cache over writing behind", { AnyDataStore(ReloadingStore(behind(slow()).cached(eager))) }),
  ]

  @Test(arguments: stacks.indices) func everyHistoryIsExplained(_ index: Int) async throws {
    let (name, open) = Self.stacks[index]
    let trial = ConcurrencyTrial(name) { _ in open() }
    try await trial.run(rounds: ConformanceSuite.roundsOfProcess, seed: SeededGenerator.seedOfProcess)
  }
}
