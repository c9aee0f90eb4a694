#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderCache
import LarderCompressedFile
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Keys as literals and interpolations, and text in variables, with every kind of store.
///
/// Most of it is checked by the compiler: a literal is a key, text in a variable is one in `store[id]`, and a synchronous read
/// needs no `await`, also in an asynchronous function.
@Suite struct StringKeyTests {
  private let id = "user:1"

  @Test func `a store of any type takes text`() async throws {
    try await everyday(MemoryStore<Int>())
    try await everyday(MemoryStore<[UInt8]>().typed(Int.self, prefix: "count/", codec: .json()))
    try await everyday(MemoryStore<Int>().cached().batched())
  }

  private func everyday(_ store: some DataStore<Int>) async throws {
    try await store.setValue(1, forKey: "user:1")
    try await store.setValue(2, forKey: "user:\(2)")
    try await store.setValue(3, forKey: StoreKey(id))
    #expect(try await store["user:1"] == 3)
    #expect(try await store["user:\(1)"] == 3)
    #expect(try await store[id] == 3)
    #expect(try await store.value(forKey: "user:1") == 3)
    #expect(try await store.value(forKey: "user:\(1)") == 3)
    #expect(try await store.value(forKey: StoreKey(id)) == 3)
    #expect(try await store.contains("user:1"))
    #expect(try await store.contains(StoreKey(id)))
    try await store.update("user:1") { value in value = (value ?? 0) + 1 }
    try await store.update(StoreKey(id)) { value in value = (value ?? 0) + 1 }
    let sum = try await store.update(StoreKey(id)) { value in
      let old = value ?? 0
      value = nil
      return old
    }
    #expect(sum == 5)
    try await store.removeValue(forKey: "user:2")
    try await store.removeValue(forKey: StoreKey(id))
    #expect(try await store.count() == 0)
  }

  @Test func `an existential takes text`() async throws {
    let store: any DataStore<Int> = MemoryStore<Int>()
    try await store.setValue(1, forKey: "user:1")
    try await store.setValue(2, forKey: StoreKey(id))
    #expect(try await store["user:1"] == 2)
    #expect(try await store[id] == 2)
    #expect(try await store.value(forKey: "user:1") == 2)
    #expect(try await store.contains("user:1"))
    #expect(try await store.contains(StoreKey(id)))
    try await store.update("user:1") { value in value = nil }
    let missing = try await store.update(StoreKey(id)) { value in value == nil }
    #expect(missing)
    try await store.removeValue(forKey: "user:1")
    try await store.removeValue(forKey: StoreKey(id))

    let erased = AnyDataStore(store)
    try await erased.setValue(4, forKey: StoreKey(id))
    #expect(try await erased.value(forKey: "user:1") == 4)
    #expect(try await erased.value(forKey: StoreKey(id)) == 4)
  }

  @Test func `reads of local stores stay synchronous`() async throws {
    let folder = try TemporaryFolder()
    let memory = MemoryStore<Int>()
    try await memory.setValue(7, forKey: StoreKey(id))
    #expect(try memory.value(forKey: "user:1") == 7)
    #expect(try memory.value(forKey: "user:\(1)") == 7)
    #expect(try memory.value(forKey: StoreKey(id)) == 7)

    let part = id.prefix(5)
    #expect(try memory.value(forKey: StoreKey(part)) == nil)
    // A closure for either a synchronous or an asynchronous function is synchronous.
    expectStoreError(.invalidKey) { try memory.value(forKey: "") }

    let json = try await JSONFileStore<Int>(path: folder.path("store.json"))
    try await json.setValue(7, forKey: StoreKey(id))
    #expect(try json.value(forKey: "user:1") == 7)
    #expect(try json.value(forKey: "user:\(1)") == 7)
    #expect(try json.value(forKey: StoreKey(id)) == 7)
    try await json.close()

    #if LMDB
    let lmdb = try await LMDBStore<Int>(path: folder.path("lmdb"))
    try await lmdb.setValue(7, forKey: StoreKey(id))
    #expect(try lmdb.value(forKey: "user:1") == 7)
    #expect(try lmdb.value(forKey: "user:\(1)") == 7)
    #expect(try lmdb.value(forKey: StoreKey(id)) == 7)
    try await lmdb.close()
    #endif

    #if Compression
    let compressed = try await CompressedFileStore<Int>(path: folder.path("store.jsonl.gz"))
    try await compressed.setValue(7, forKey: StoreKey(id))
    #expect(try compressed.value(forKey: "user:1") == 7)
    #expect(try compressed.value(forKey: "user:\(1)") == 7)
    #expect(try compressed.value(forKey: StoreKey(id)) == 7)
    try await compressed.close()
    #endif
  }

  @Test func `decorators take text`() async throws {
    let cached = MemoryStore<Int>().cached()
    try await cached.setValue(1, forKey: StoreKey(id))
    #expect(try await cached.value(forKey: "user:1") == 1)
    #expect(try await cached.value(forKey: StoreKey(id)) == 1)

    let expiring = MemoryStore<Expiring<Int>>().expiring()
    try await expiring.setValue(2, forKey: "user:1", timeToLive: .never)
    try await expiring.setValue(3, forKey: StoreKey(id), timeToLive: .never)
    try await expiring.update(StoreKey(id)) { value in value = (value ?? 0) + 1 }
    #expect(try await expiring.value(forKey: StoreKey(id)) == 4)

    let batched = MemoryStore<Int>().batched()
    try await batched.setValue(3, forKey: StoreKey(id))
    #expect(try await batched.value(forKey: StoreKey(id)) == 3)

    let view = MemoryStore<[UInt8]>().typed(Int.self, prefix: "count/", codec: .json())
    try await view.setValue(4, forKey: StoreKey(id))
    #expect(try await view.value(forKey: "user:1") == 4)
    #expect(try await view.value(forKey: StoreKey(id)) == 4)
  }

  @Test func `a queue takes text`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await QueueStore<Int>(path: folder.path("queue"))
    try await queue.setValue(1, forKey: StoreKey(id))
    #expect(try await queue.value(forKey: "user:1") == 1)
    #expect(try await queue.value(forKey: StoreKey(id)) == 1)
    try await queue.close()
  }

  @Test func `batches and ranges take text`() async throws {
    let store = MemoryStore<Int>()
    var batch = ChangeBatch<Int>()
    batch.setValue(1, forKey: "user:1")
    batch.setValue(2, forKey: StoreKey(id))
    batch.setValue(3, forKey: "user:3")
    batch.removeValue(forKey: "user:3")
    let prefix = "user:"
    try store.apply(batch)
    #expect(try await store.entries(in: .prefix(StoreKey(prefix)), limit: 9) == [StoreEntry(key: "user:1", value: 2)])
    #expect(try store.count(in: .prefix("user:")) == 1)
    batch.removeValue(forKey: StoreKey(id))
    try store.apply(batch)
    #expect(try await store.count() == 0)
  }
}
#endif
