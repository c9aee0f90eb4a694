import Larder
import LarderFiles
import LarderTesting
import Testing

@testable import LarderJSON

/// The memory that the text of the files takes.
@Suite struct JSONFileMemoryTests {
  let disk = SimulatedFileSystem(seed: 1)

  private func open() async throws -> UntypedJSONFile {
    try await UntypedJSONFile(
      StoreFileConfiguration(
        path: "/s.json", durability: .synced, access: .readWrite, createsIfMissing: true, fileSystem: disk),
      newCodecName: "json")
  }

  @Test func `a file of zeros takes no memory`() throws {
    try disk.place([UInt8](repeating: 0, count: 16 << 20), at: "/s.json")
    let text = try disk.open("/s.json", .read).readText(size: 16 << 20)
    #expect(text.count == 1 << 20 && text.capacity < 4 << 20)
  }

  @Test func `a fold releases mostly obsolete text`() async throws {
    let value = String(repeating: "x", count: 1 << 16)
    let first = try JSONFileStore(await open(), codec: JSONCodec<String>())
    try await first.apply(ChangeBatch((10..<42).map { BatchChange.set(StoreKey("key \($0)"), value) }))
    try await first.close()

    let file = try await open()
    let store = try JSONFileStore(file, codec: JSONCodec<String>())
    // A value that is a slice of the document does not begin at index 0.
    func isSlice() throws -> Bool { try #require(file.contents.snapshot.map["key 41"]).startIndex > 0 }
    try await store.removeAll(in: "key 10"..<"key 20")
    try await store.compact()
    #expect(try isSlice())
    try await store.removeAll(in: "key 20"..<"key 35")
    try await store.compact()
    #expect(try !isSlice())
    #expect(try store.value(forKey: "key 41") == value)
    #expect(try store.count(in: .all) == 7)
    try await store.close()

    let again = try JSONFileStore(await open(), codec: JSONCodec<String>())
    #expect(try again.value(forKey: "key 35") == value)
    try await again.close()
  }
}
