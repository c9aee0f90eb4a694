#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderJSON
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct ChecksummedCodecConformance {
  static let lmdb = ConformanceSuite(named: "LMDBStore with checksums") { location in
    try await LMDBStore<SampleValue?>(
      path: location.path("environment"), codec: .json(SampleValue?.self).checksummed(), durability: .buffered,
      access: location.access)
  }

  static let json = ConformanceSuite(named: "JSONFileStore with checksums", lacking: .observation) { location in
    try await JSONFileStore<SampleValue?>(
      path: location.path("store.json"), codec: .json(SampleValue?.self).checksummed(), durability: .buffered,
      access: location.access)
  }

  @Test(arguments: lmdb.casesOfCombinations) func `conforms in LMDB`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: json.casesOfCombinations) func `conforms in a document`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }
}
#endif
