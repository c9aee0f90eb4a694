#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderJSON
import LarderLMDB
import LarderMirror
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// A store that writes to two others is a store like its primary, before and after both were exchanged.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct MirroredStoreConformance {
  static let shuffled = ConformanceSuite(
    named: "MirroredStore of FaultyStores", lacking: [.persistence, .encoding]
  ) { _ in
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    return try MirroredStore(
      primary: MemoryStore<SampleValue?>().faulty(plan: plan), secondary: MemoryStore<SampleValue?>().faulty(plan: plan)
    ).observable()
  }

  static let switched = ConformanceSuite(
    named: "MirroredStore of MemoryStores, switched", lacking: [.persistence, .encoding]
  ) { _ in
    let mirror = try MirroredStore(primary: MemoryStore<SampleValue?>(), secondary: MemoryStore<SampleValue?>())
    try await mirror.repair()
    try await mirror.promoteSecondary()
    return mirror.observable()
  }

  static let files = ConformanceSuite(named: "MirroredStore of JSONFileStore and LMDBStore") { location in
    try await MirroredStore(
      primary: JSONFileStore<SampleValue?>(
        path: location.path("store.json"), durability: .buffered, access: location.access),
      secondary: LMDBStore<SampleValue?>(
        path: location.path("environment"), codec: .json(SampleValue?.self), durability: .buffered,
        access: location.access)
    ).observable()
  }

  @Test(arguments: shuffled.cases) func `conforms shuffled`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: switched.casesOfCombinations) func `conforms switched`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: files.casesOfCombinations) func `conforms over files`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }
}
#endif
