import Larder
import LarderIndexes

// error: indexes need a store of bytes
func open() async throws -> some DataStore<Int> {
  let byValue = StoreIndex<Int>("value") { _, value in [[value]] }
  return try await MemoryStore<Int>().indexed(by: [byValue], codec: .json())
}
