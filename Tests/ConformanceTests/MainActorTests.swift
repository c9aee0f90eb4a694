#if Compression && Crypto && LMDB && Metrics && SQLite
import Dispatch
import Larder
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderQueue
import TestSupport
import Testing

/// Expensive work leaves the caller's actor, which may be the main actor; see `Modules/Larder/Larder.docc/Concurrency.md`.
@MainActor
@Suite struct MainActorTests {
  /// Counts the values that are encoded and decoded on the main actor and elsewhere.
  private final class ActorCounts: Sendable {
    // Identifies the main actor's dispatch queue, whose thread need not be the main thread.
    private let key = DispatchSpecificKey<Bool>()
    private let counts = Locked((main: 0, others: 0))

    init() {
      DispatchQueue.main.setSpecific(key: key, value: true)
    }

    func note() {
      let isMain = DispatchQueue.getSpecific(key: key) == true
      counts.withLock { counts in
        if isMain { counts.main += 1 } else { counts.others += 1 }
      }
    }

    /// Returns the counts since the last call.
    func take() -> (main: Int, others: Int) {
      counts.withLock { counts in
        defer { counts = (0, 0) }
        return counts
      }
    }
  }

  private struct NotingCodec: Codec {
    let counts: ActorCounts
    let base = JSONCodec<String>()
    var name: String { base.name }
    var format: CodecFormat { base.format }

    func encode(_ value: String, into bytes: inout [UInt8], context: ValueContext) throws {
      counts.note()
      try base.encode(value, into: &bytes, context: context)
    }

    func decode(_ bytes: RawSpan, context: ValueContext) throws -> String {
      counts.note()
      return try base.decode(bytes, context: context)
    }
  }

  enum Kind: CaseIterable {
    case json, compressed, lmdb, queue, typedView
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(_ kind: Kind, _ codec: NotingCodec) async throws -> AnyDataStore<String> {
    switch kind {
    case .json: AnyDataStore(try await JSONFileStore(path: folder.path("s.json"), codec: codec))
    case .compressed: AnyDataStore(try await CompressedFileStore(path: folder.path("s.gz"), codec: codec))
    case .lmdb: AnyDataStore(try await LMDBStore(path: folder.path("s"), codec: codec))
    case .queue: AnyDataStore(try await QueueStore(path: folder.path("q"), codec: codec))
    case .typedView:
      AnyDataStore(
        try await LMDBStore(path: folder.path("v"), codec: .raw).typed(String.self, prefix: "v/", codec: codec))
    }
  }

  @Test(arguments: Kind.allCases) func `large work is encoded and decoded elsewhere`(_ kind: Kind) async throws {
    let counts = ActorCounts()
    let store = try await open(kind, NotingCodec(counts: counts))
    let keys = (0..<100).map { StoreKey("key \($0)") }
    try await store.apply(ChangeBatch(keys.map { .set($0, "small") }))
    #expect(counts.take().main == 0)
    let large = String(repeating: "large ", count: 8000)
    try await store.apply(ChangeBatch((1...4).map { .set(StoreKey("large \($0)"), large) }))
    // Encoding moves off the actor once the values exceed the limit.
    let encoded = counts.take()
    #expect(encoded.main <= 2 && encoded.others == 4)
    try await store.update(keys) { values in values.assign(values.map { $0.map { $0 + "er" } }) }
    #expect(counts.take().main == 0)

    #expect(try await store.entries(in: "key"..<"kez", limit: .max, order: .ascending).count == 100)
    #expect(counts.take() == (0, 100))
    #expect(try await store.values(forKeys: keys).allSatisfy { $0 == "smaller" })
    #expect(counts.take() == (0, 100))
    // These values are few but large. Those that fit are decoded twice.
    #expect(try await store.entries(in: "large"..., limit: 9, order: .ascending).count == 4)
    #expect(counts.take().others == 4)
    #expect(try await store.values(forKeys: ["large 1", "large 2"]) == [large, large])
    #expect(counts.take().others == 2)

    // As in the guide `Concurrency.md`.
    let photos = store
    try await photos.setValue(large + large, forKey: "photo:7")
    _ = counts.take()
    // snippet.one-large-value
    let photo = try await photos.values(forKeys: ["photo:7"])[0]
    // snippet.end
    #expect(photo == large + large)
    #expect(counts.take() == (0, 1))
    try await store.close()
  }

  /// Small writes that the caller does not await are made in the order in which the actor started them.
  @Test(arguments: Kind.allCases) func `small writes keep their order`(_ kind: Kind) async throws {
    let store = try await open(kind, NotingCodec(counts: ActorCounts()))
    for round in 0..<50 {
      let writes = (0..<4).map { number in
        // The first values take longer to encode.
        Task { try await store.setValue(String(repeating: "\(number)", count: 5000 >> (4 * number)), forKey: "k") }
      }
      for write in writes { try await write.value }
      #expect(try await store.value(forKey: "k") == "3", "round \(round)")
    }
    try await store.close()
  }

  /// Changing threads takes longer than decoding a few small values.
  @Test(arguments: [Kind.json, .compressed, .lmdb, .typedView]) func `small values are decoded on the callers actor`(
    _ kind: Kind
  )
    async throws
  {
    let counts = ActorCounts()
    let store = try await open(kind, NotingCodec(counts: counts))
    let keys = (0..<64).map { StoreKey("key \($0)") }
    try await store.apply(ChangeBatch(keys.map { .set($0, "small") }))
    _ = counts.take()
    #expect(try await store.values(forKeys: keys).count == 64)
    #expect(try await store.entries(in: .all, limit: 64, order: .descending).count == 64)
    #expect(try await store.value(forKey: "key 1") == "small")
    #expect(counts.take() == (129, 0))
    try await store.close()
  }
}
#endif
