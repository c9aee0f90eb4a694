#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCache
import LarderExpiry
import LarderIndexes
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Stores whose codec has no key for a while.
@Suite struct MissingKeyTests {
  private func expectMissingKey<Result>(
    _ key: StoreKey? = nil, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
  ) async {
    let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { _ = try await body() }
    #expect(
      error?.code == .keyUnavailable && error?.isRetryable == true && error?.outcome == .nothingChanged
        && error?.isValueUnreadable == true && (key == nil || error?.key == key),
      sourceLocation: sourceLocation)
  }

  @Test(arguments: UnchangedUpdateTests.kinds) func `a store without its key keeps everything`(_ kind: String)
    async throws
  {
    let folder = try TemporaryFolder()
    let key = NonceCodec<RawCodec>.Switch()
    func open() async throws -> AnyDataStore<[UInt8]> {
      try await UnchangedUpdateTests.open(kind, folder, codec: NonceCodec(.raw, key: key))
    }
    var store = try await open()
    let keys = (0..<300).map { StoreKey(integer: $0) }
    try await store.apply(ChangeBatch(keys.map { .set($0, $0.bytes) }))
    try await store.close()
    key.isOn = false
    for _ in 0..<3 {
      store = try await open()
      let before = try UnchangedUpdateTests.files(of: folder)
      #expect(try await store.keys(in: .all, limit: .max, order: .ascending) == keys)
      #expect(try await store.count() == 300)
      #expect(try await store.contains(keys[7]))
      await expectMissingKey(keys[7]) { try await store.value(forKey: keys[7]) }
      await expectMissingKey(keys[7]) { try await store.values(forKeys: ["missing", keys[7]]) }
      await expectMissingKey(keys[0]) { try await store.entries(in: .all, limit: 9) }
      await expectMissingKey(keys[7]) { try await store.update(keys[7]) { $0 = nil } }
      await expectMissingKey { try await store.setValue([1], forKey: keys[7]) }
      let maintenance = try #require(store.maintenance)
      #expect(try await maintenance.storeStatistics().entryCount == 300)
      let report = try await maintenance.verify()
      #expect(report.entryCount == 300 && report.findings.map(\.key) == keys)
      #expect(report.findings.allSatisfy { $0.message.contains("was not checked") })
      let outcome = try await store.reencrypt()
      #expect(outcome.examinedCount == 300 && outcome.failureCount == 300)
      #expect(outcome.failures.allSatisfy { $0.code == .keyUnavailable } && outcome.failures.count == 100)
      #expect(try UnchangedUpdateTests.files(of: folder) == before)
      let copy = try TemporaryFolder()
      try await maintenance.backup(to: copy.path("store"))
      try await store.close()
      key.isOn = true
      let backup = try await UnchangedUpdateTests.open(kind, copy, codec: NonceCodec(.raw, key: key))
      #expect(try await backup.values(forKeys: keys) == keys.map(\.bytes))
      try await backup.close()
      key.isOn = false
    }
    store = try await open()
    try await store.removeValue(forKey: keys[7])
    // LMDB cannot compact an open file.
    if ["json", "compressed", "queue"].contains(kind) { try await store.maintenance?.compact() }
    #expect(try await store.count() == 299)
    key.isOn = true
    let rest = keys.filter { $0 != keys[7] }
    #expect(try await store.values(forKeys: rest) == rest.map(\.bytes))
    try await store.close()
  }

  @Test func `nothing Expires without the key`() async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    let key = NonceCodec<ExpiringCodec<RawCodec>>.Switch()
    let base = try await JSONFileStore<Expiring<[UInt8]>>(
      path: folder.path("store"), codec: NonceCodec(RawCodec().expiring(), key: key), durability: .buffered)
    let store = base.expiring(.after(.seconds(60)), purgesOnWrite: false) { clock.date }
    let keys = (0..<40).map { StoreKey(integer: $0) }
    try await store.apply(ChangeBatch(keys.map { .set($0, $0.bytes) }))
    clock.advance(by: .seconds(30))
    key.isOn = false
    await expectMissingKey(keys[3]) { try await store.value(forKey: keys[3]) }
    clock.advance(by: .seconds(60))
    let before = try UnchangedUpdateTests.files(of: folder)
    // Expired or not, that is not known.
    await expectMissingKey(keys[3]) { try await store.value(forKey: keys[3]) }
    #expect(try await store.purgeExpired(limit: .max) == 0)
    #expect(try await base.count() == 40)
    #expect(try UnchangedUpdateTests.files(of: folder) == before)
    key.isOn = true
    #expect(try await store.value(forKey: keys[3]) == nil)
    #expect(try await store.purgeExpired(limit: .max) == 40)
    try await store.close()
  }

  @Test func `a cache does not remember a missing key`() async throws {
    let key = NonceCodec<RawCodec>.Switch()
    let store = MemoryStore<[UInt8]>().typed([UInt8].self, codec: NonceCodec(.raw, key: key)).cached()
    try await store.base.setValue([1], forKey: "a")
    key.isOn = false
    for _ in 0..<2 { await expectMissingKey("a") { try await store.value(forKey: "a") } }
    key.isOn = true
    #expect(try await store.value(forKey: "a") == [1])
    try await store.close()
  }

  @Test func `a rebuild without the key completes no index`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let key = NonceCodec<RawCodec>.Switch()
    func open(version: Int) async throws -> IndexedStore<MemoryStore<[UInt8]>, [UInt8]> {
      let index = StoreIndex<[UInt8]>("first", version: version) { _, value in [[Int(value[0])]] }
      return try await bytes.indexed(by: [index], codec: NonceCodec(.raw, key: key))
    }
    var store = try await open(version: 1)
    try await store.apply(ChangeBatch((0..<200).map { .set(StoreKey(integer: $0), [UInt8($0 % 2)]) }))
    // Another program writes with another version of the index.
    store = try await open(version: 2)
    key.isOn = false
    await expectMissingKey(StoreKey(integer: 0)) { try await store.rebuildIndexes() }
    #expect(try await store.incompleteIndexes() == ["first"])
    // Removing needs no value, and leaves no entry of an index behind.
    try await store.removeValue(forKey: StoreKey(integer: 0))
    key.isOn = true
    try await store.rebuildIndexes()
    #expect(try await store.incompleteIndexes() == [])
    key.isOn = false
    try await store.removeValue(forKey: StoreKey(integer: 1))
    key.isOn = true
    #expect(try await store.verifyIndexes() == VerificationReport(entryCount: 198))
  }
}
#endif
