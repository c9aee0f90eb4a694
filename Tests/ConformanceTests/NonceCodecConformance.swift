#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCompressedFile
import LarderIndexes
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Conformance of stores whose bytes differ each time and belong to their keys, as with encryption.
@Suite(.limitedParallelism) struct NonceCodecConformance {
  static let codec = NonceCodec(.json(SampleValue?.self))

  static let lmdb = ConformanceSuite(named: "LMDBStore with nonces", rounds: 2) { location in
    try await LMDBStore<SampleValue?>(
      path: location.path("environment"), codec: codec, durability: .buffered, access: location.access)
  }

  static let json = ConformanceSuite(named: "JSONFileStore with nonces", lacking: .observation, rounds: 2) { location in
    try await JSONFileStore<SampleValue?>(
      path: location.path("store.json"), codec: codec, durability: .buffered, access: location.access)
  }

  static let compressed = ConformanceSuite(
    named: "CompressedFileStore with nonces", lacking: .observation, rounds: 2
  ) { location in
    try await CompressedFileStore<SampleValue?>(
      path: location.path("store.gz"), codec: codec, durability: .buffered, access: location.access)
  }

  static let queue = ConformanceSuite(named: "QueueStore with nonces", rounds: 2) { location in
    try await QueueStore<SampleValue?>(
      path: location.path("queue"), codec: codec, durability: .buffered, access: location.access
    ).observable()
  }

  static let view = ConformanceSuite(
    named: "TypedView of LMDBStore with nonces", rounds: 2, maximumKeyLength: 511 - 2
  ) { location in
    try await LMDBStore(
      path: location.path("environment"), codec: .raw, durability: .buffered, access: location.access
    ).typed(SampleValue?.self, prefix: "v/", codec: codec)
  }

  static let indexed = ConformanceSuite(
    named: "IndexedStore with nonces", lacking: .persistence, rounds: 2, maximumKeyLength: 511 - 3
  ) { _ in
    try await MemoryStore<[UInt8]>().observable().indexed(by: IndexedStoreConformance.indexes, codec: codec)
  }

  static let suites = [lmdb, json, compressed, queue, view, indexed]

  @Test(arguments: suites.flatMap(\.casesOfCombinations))
  func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
