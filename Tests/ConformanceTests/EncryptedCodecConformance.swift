#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderCompressedFile
import LarderCompression
import LarderCrypto
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Every store, and whole stacks, with encrypted values.
@Suite(.limitedParallelism) struct EncryptedCodecConformance {
  /// A source without a ring, which keeps none either.
  private struct EmptySource: KeySource {
    func load() -> [UInt8]? { nil }
    func save(_ content: [UInt8], replacing previous: [UInt8]?) {}
  }

  private static let ring = Task { try await KeyRing.open(in: EmptySource(), createsIfMissing: true) }

  static func encrypted<Base: Codec>(_ base: Base) async throws -> EncryptedCodec<Base> {
    base.encrypted(with: try await ring.value, purpose: "conformance")
  }

  static let json = ConformanceSuite(named: "JSONFileStore of encrypted values", lacking: .observation) { location in
    try await JSONFileStore(
      path: location.path("store.json"), codec: try await encrypted(.json(SampleValue?.self)), durability: .buffered,
      access: location.access)
  }

  static let compressed = ConformanceSuite(
    named: "CompressedFileStore of encrypted values", lacking: .observation
  ) { location in
    try await CompressedFileStore(
      path: location.path("store.gz"), codec: try await encrypted(.cbor(SampleValue?.self)), durability: .buffered,
      access: location.access)
  }

  static let lmdb = ConformanceSuite(named: "LMDBStore of encrypted values") { location in
    try await LMDBStore(
      path: location.path("environment"), codec: try await encrypted(.cbor(SampleValue?.self).compressed()),
      durability: .buffered, access: location.access)
  }

  static let queue = ConformanceSuite(
    named: "QueueStore of encrypted values", lacking: .observation, rounds: 5
  ) { location in
    try await QueueStore(
      path: location.path("queue"), codec: try await encrypted(.cbor(SampleValue?.self)), durability: .buffered,
      access: location.access)
  }

  static let stack = ConformanceSuite(
    named: "a stack over LMDBStore with encrypted deadlines", lacking: .keysWithoutValues, rounds: 4
  ) { location in
    try await LMDBStore(
      path: location.path("environment"), codec: try await encrypted(.cbor(SampleValue?.self).expiring()),
      durability: .buffered, access: location.access
    ).batched().cached().expiring(.after(.seconds(86_400)))
  }

  static let view = ConformanceSuite(
    named: "a stack over an encrypted view", lacking: [.keysWithoutValues, .observation],
    rounds: 4, maximumKeyLength: StoreKey.maximumLength - 2
  ) { location in
    try await JSONFileStore<[UInt8]>(
      path: location.path("store.json"), codec: .raw, durability: .buffered, access: location.access
    ).typed(
      Expiring<SampleValue?>.self, prefix: "m/", codec: try await encrypted(.json(SampleValue?.self).expiring())
    ).cached().expiring(.after(.seconds(86_400)))
  }

  @Test(arguments: json.casesOfCombinations) func `conforms in JSON`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: compressed.casesOfCombinations) func `conforms compressed`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: lmdb.casesOfCombinations) func `conforms in LMDB`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: queue.casesOfCombinations) func `conforms in a queue`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: stack.casesOfCombinations) func `conforms in a stack`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: view.casesOfCombinations) func `conforms in a view`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }
}
#endif
