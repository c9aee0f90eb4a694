import LarderFiles
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the page `Modules/Files/LarderFiles/LarderFiles.docc/LarderFiles.md`.
///
/// It must appear there unchanged, and it must work.
@Suite struct LarderFilesPageTests {
  struct InUse: Error {}

  // snippet.overview
  func save(_ text: String, at path: String, in fileSystem: some StoreFileSystem) throws {
    guard let lock = try FileLock.acquire(path + ".lock", in: fileSystem) else { throw InUse() }
    // Writes a temporary file, synchronizes it and renames it. A crash leaves the old file or the new one.
    let result = Result { try fileSystem.replaceFile(at: path) { try $0.write(Array(text.utf8)) } }
    try lock.release()
    try result.get()
  }
  // snippet.end

  @Test func `saves a text under a lock`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    try save("old", at: "/text", in: disk)
    try save("new", at: "/text", in: disk)
    #expect(disk.content(at: "/text") == Array("new".utf8))
    let lock = try #require(try FileLock.acquire("/text.lock", in: disk))
    #expect(throws: InUse.self) { try save("other", at: "/text", in: disk) }
    try lock.release()
  }
}
