#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderObservation
import LarderQueue
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct QueueStoreConformance {
  static let synced = ConformanceSuite(named: "QueueStore, synced", rounds: 5) { location in
    try await QueueStore<SampleValue?>(path: location.path("queue"), access: location.access).observable()
  }

  static let buffered = ConformanceSuite(
    named: "QueueStore, buffered, behind AnyDataStore", codec: .json(), lacking: .observation, rounds: 5
  ) { location, codec in
    AnyDataStore(
      try await QueueStore<SampleValue?>(
        path: location.path("queue"), codec: codec, durability: .buffered, access: location.access))
  }

  /// The segments are so small that the queue constantly creates and removes them.
  static let simulated = ConformanceSuite(named: "QueueStore on a simulated disk", lacking: .observation, rounds: 5) {
    location in
    let disk = location.object { SimulatedFileSystem(seed: SeededGenerator.seedOfProcess) }
    return try await QueueStore<SampleValue?>(
      path: "/queue", codec: .json(), configuration: QueueConfiguration(segmentSize: 4096), access: location.access,
      fileSystem: disk)
  }

  @Test(arguments: synced.casesOfCombinations) func `conforms synced`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: buffered.cases) func `conforms buffered`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: simulated.casesOfCombinations) func `conforms on a simulated disk`(
    _ conformanceCase: ConformanceCase
  )
    async throws
  {
    try await conformanceCase.run()
  }
}
#endif
