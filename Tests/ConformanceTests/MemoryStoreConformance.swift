#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderObservation
import LarderTesting
import Testing
import TestSupport

@Suite(.limitedParallelism) struct MemoryStoreConformance {
  static let lacking: StoreCapabilities = [.persistence, .encoding]

  static let bare = ConformanceSuite(named: "MemoryStore", lacking: lacking.union(.observation)) { _ in
    MemoryStore<SampleValue?>()
  }

  static let erased = ConformanceSuite(named: "AnyDataStore over MemoryStore", lacking: lacking) { _ in
    AnyDataStore(MemoryStore<SampleValue?>().observable())
  }

  static let forwarded = ConformanceSuite(named: "ForwardingStore over MemoryStore", lacking: lacking) { _ in
    ForwardedStore(base: MemoryStore<SampleValue?>().observable())
  }

  static let stacked = ConformanceSuite(
    named: "a stack over MemoryStore", lacking: lacking.union(.observation)
  ) { _ in
    AnyDataStore(ForwardedStore(base: AnyDataStore(ForwardedStore(base: MemoryStore<SampleValue?>()))))
  }

  static let shuffled = ConformanceSuite(named: "FaultyStore over MemoryStore", lacking: lacking) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return MemoryStore<SampleValue?>().observable().faulty(plan: plan)
  }

  @Test(arguments: bare.cases) func `conforms bare`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: erased.cases) func `conforms erased`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: forwarded.cases) func `conforms forwarded`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: stacked.casesOfCombinations) func `conforms stacked`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: shuffled.casesOfCombinations) func `conforms shuffled`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }
}

/// A decorator that only forwards, which is the least that every decorator must do.
struct ForwardedStore<Base: DataStore>: PassingStore {
  typealias Value = Base.Value

  let base: Base
}

extension ForwardedStore: MaintainableStore where Base: MaintainableStore {}

extension ForwardedStore: ObservableStore where Base: ObservableStore {
  func weakReference() -> @Sendable () -> Self? {
    let base = base.weakReference()
    return { base().map { ForwardedStore(base: $0) } }
  }
}
#endif
