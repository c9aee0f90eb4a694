#if Compression
import Larder
import LarderCompressedFile
import LarderObservation
import LarderTesting
import Testing

@Suite struct CompressedFileStoreConformance {
  static let synced = ConformanceSuite(named: "CompressedFileStore, synced", codec: .json()) { location, codec in
    try await CompressedFileStore<SampleValue?>(path: location.path("store.gz"), codec: codec, access: location.access)
      .observable()
  }

  static let erased = ConformanceSuite(
    named: "AnyDataStore over CompressedFileStore, without a cache", lacking: .observation
  ) { location in
    AnyDataStore(
      try await CompressedFileStore<SampleValue?>(
        path: location.path("store.gz"), codec: .json(), durability: .buffered, access: location.access, cacheSize: 0))
  }

  static let simulated = ConformanceSuite(
    named: "CompressedFileStore on a simulated disk", lacking: .observation
  ) { location in
    let disk = location.object { SimulatedFileSystem(seed: SeededGenerator.seedOfProcess) }
    return try await CompressedFileStore<SampleValue?>(
      path: "/store.gz", codec: .json(), access: location.access, fileSystem: disk)
  }

  @Test(arguments: synced.cases) func `conforms synced`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: erased.casesOfCombinations) func `conforms erased`(_ conformanceCase: ConformanceCase) async throws {
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
