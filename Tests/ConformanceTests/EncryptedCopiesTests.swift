#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCache
import LarderCrypto
import LarderTesting
import TestSupport
import Testing

/// Encrypted copies of entries in the cache of a `TieredStore`.
@Suite struct EncryptedCopiesTests {
  private let base = MemoryStore<String>()
  private let disk = MemoryStore<[UInt8]>()

  private let configuration = TieredStoreConfiguration(
    timeToLive: .seconds(3600), negativeTimeToLive: .seconds(3600))

  /// Opens a cache whose copies a codec encrypts.
  private func openEncryptingValues() async throws -> TieredStore<MemoryStore<String>, MemoryStore<[UInt8]>> {
    try base.cached(
      in: disk, codec: try await EncryptedCodecConformance.encrypted(.json(String.self)), configuration: configuration)
  }

  /// Returns whether the cache contains some text.
  private func cacheContains(_ text: String) throws -> Bool {
    let bytes = Array(text.utf8)
    return try disk.entries(in: .all, limit: .max, order: .ascending).contains { entry in
      entry.value.indices.contains { entry.value[$0...].starts(with: bytes) }
    }
  }

  @Test func `a copy belongs to its key`() async throws {
    let store = try await openEncryptingValues()
    try await store.apply([.set("a", "secret of a"), .set("b", "secret of b")])
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == ["secret of a", "secret of b"])
    #expect(try !cacheContains("secret"))
    // Someone exchanges the copies, with their times.
    let (a, b) = (try #require(try disk.value(forKey: "a")), try #require(try disk.value(forKey: "b")))
    try disk.apply([.set("a", b), .set("b", a)])
    let next = try await openEncryptingValues()
    for key: StoreKey in ["a", "b"] {
      #expect(try await next.value(forKey: key, policy: .cacheOnly) == nil)
    }
    #expect(next.statistics().cacheFailures == 2)
    #expect(try await next.values(forKeys: ["a", "b"]) == ["secret of a", "secret of b"])
    // They are replaced.
    while try disk.value(forKey: "a") == b || disk.value(forKey: "b") == a { await Task.yield() }
    #expect(try await next.values(forKeys: ["a", "b"], policy: .cacheOnly) == ["secret of a", "secret of b"])
  }

  @Test func `a changed copy is not used`() async throws {
    let store = try await openEncryptingValues()
    try await store.setValue("secret", forKey: "a")
    let copy = try #require(try disk.value(forKey: "a"))
    for index in copy.indices.suffix(20) {
      var changed = copy
      changed[index] ^= 1
      try disk.apply([.set("a", changed)])
      #expect(try await store.value(forKey: "a", policy: .cacheOnly) == nil)
    }
    try disk.apply([.set("a", copy)])
    #expect(try await store.value(forKey: "a", policy: .cacheOnly) == "secret")
  }

  /// If the bytes of the cache are encrypted, so are the times of copies and the knowledge that a key is missing.
  @Test func `an encrypted cache hides missing keys`() async throws {
    let encrypted = disk.typed([UInt8].self, codec: try await EncryptedCodecConformance.encrypted(.raw))
    let store = try base.cached(in: encrypted, codec: .json(String.self), configuration: configuration)
    try await store.setValue("secret", forKey: "a")
    #expect(try await store.value(forKey: "b") == nil)
    while try disk.count(in: .all) < 2 { await Task.yield() }
    #expect(try !cacheContains("secret"))
    try base.apply([.set("b", "new")])
    // A copy of the missing key in the place of another one, and a forged one.
    try disk.apply([.set("a", try #require(try disk.value(forKey: "b"))), .set("b", [0])])
    #expect(try await store.value(forKey: "a") == "secret")
    #expect(try await store.value(forKey: "b") == "new")
  }
}
#endif
