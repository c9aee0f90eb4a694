import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderCompression
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderTesting
import TestSupport
import Testing

/// Which stores name the thread on which they write, and who hands it on.
@Suite struct WriteExecutorTests {
  @Test func storesWithAThreadOfTheirOwnNameIt() async throws {
    let folder = try TemporaryFolder()
    let stores: [any DataStore] = [
      try await LMDBStore<Int>(path: folder.path("environment")),
      try await JSONFileStore<Int>(path: folder.path("s.json")),
      try await CompressedFileStore<Int>(path: folder.path("s.gz")),
    ]
    for store in stores {
      #expect(store.information.writeExecutor != nil, "\(store)")
      try await store.close()
    }
    #expect(MemoryStore<Int>().information.writeExecutor == nil)
  }

  @Test func decoratorsHandOnWhatTheirBaseHas() async throws {
    let store = try await JSONFileStore<Expiring<Int>>(
      path: "/store.json", codec: .json().expiring(), fileSystem: SimulatedFileSystem(seed: 1))
    let stack = store.batched().expiring(.after(.seconds(1))).cached().metered(as: "stack", logger: nil)
    #expect(stack.information.writeExecutor != nil)
    // Its writes are made later, elsewhere.
    #expect(stack.writeBehind().information.writeExecutor == nil)
    try await stack.close()
  }
}
