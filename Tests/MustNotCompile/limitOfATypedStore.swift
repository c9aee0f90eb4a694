import Larder
import LarderBounded

// error: a limit needs a store of bytes
func open() async throws -> some DataStore<Int> {
  try await MemoryStore<Int>().bounded(bytes: 1_000_000)
}
