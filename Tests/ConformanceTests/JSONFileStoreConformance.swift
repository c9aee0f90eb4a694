#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderJSON
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct JSONFileStoreConformance {
  static let synced = ConformanceSuite(named: "JSONFileStore, synced") { location in
    try await JSONFileStore<SampleValue?>(path: location.path("store.json"), access: location.access).observable()
  }

  static let buffered = ConformanceSuite(named: "JSONFileStore, buffered", codec: .json(), lacking: .observation) {
    location, codec in
    try await JSONFileStore<SampleValue?>(
      path: location.path("store.json"), codec: codec, durability: .buffered, access: location.access)
  }

  static let erased = ConformanceSuite(named: "AnyDataStore over JSONFileStore, synced", lacking: .observation) {
    location in
    AnyDataStore(try await JSONFileStore<SampleValue?>(path: location.path("store.json"), access: location.access))
  }

  static let erasedBuffered = ConformanceSuite(
    named: "AnyDataStore over JSONFileStore, buffered", lacking: .observation
  ) { location in
    AnyDataStore(
      try await JSONFileStore<SampleValue?>(
        path: location.path("store.json"), durability: .buffered, access: location.access))
  }

  static let simulated = ConformanceSuite(named: "JSONFileStore on a simulated disk", lacking: .observation) {
    location in
    let disk = location.object { SimulatedFileSystem(seed: SeededGenerator.seedOfProcess) }
    return try await JSONFileStore<SampleValue?>(
      path: "/store.json", codec: .json(), access: location.access, fileSystem: disk)
  }

  @Test(arguments: synced.casesOfCombinations) func `conforms synced`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: buffered.cases) func `conforms buffered`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: erased.casesOfCombinations) func `conforms erased`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: erasedBuffered.casesOfCombinations) func `conforms erased buffered`(
    _ conformanceCase: ConformanceCase
  )
    async throws
  {
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
