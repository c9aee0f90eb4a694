#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCompression
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import Testing

@Suite struct CompressedCodecConformance {
  /// A dictionary trained on values that resemble the sample values.
  private static let dictionary = Result {
    try CompressionDictionary.train(
      on: (0..<40).map { SampleValue("value number \($0)") }, codec: .json(), size: 256)
  }

  /// Returns a codec that compresses every value that the dictionary makes smaller.
  private static func compressed<Base: Codec>(_ base: Base) throws -> CompressedCodec<Base> {
    base.compressed(dictionary: try dictionary.get(), threshold: 0)
  }

  static let memory = ConformanceSuite(
    named: "TypedView with compression", lacking: .persistence, maximumKeyLength: 511 - 2
  ) { _ in
    MemoryStore<[UInt8]>().observable().typed(
      SampleValue?.self, prefix: "m/", codec: try compressed(.json(SampleValue?.self)))
  }

  static let lmdb = ConformanceSuite(named: "LMDBStore with compression") { location in
    try await LMDBStore<SampleValue?>(
      path: location.path("environment"), codec: try compressed(.json(SampleValue?.self).checksummed()),
      durability: .buffered, access: location.access)
  }

  static let json = ConformanceSuite(named: "JSONFileStore with compression", lacking: .observation) { location in
    try await JSONFileStore<SampleValue?>(
      path: location.path("store.json"), codec: try compressed(.json(SampleValue?.self)), durability: .buffered,
      access: location.access)
  }

  @Test(arguments: memory.cases) func `conforms in a view`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
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
