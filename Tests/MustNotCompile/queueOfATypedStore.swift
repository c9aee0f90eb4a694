import Larder
import LarderStoreQueue

// error: a queue needs a store of bytes
func open() async throws {
  _ = try await MemoryStore<Int>().queue(of: String.self, prefix: "jobs/", codec: .json())
}
