#if Compression
import Foundation
import Larder
import LarderCompressedFile
import TestSupport
import Testing

/// Tests that need a real file system that is full or read-only.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct CompressedFileStoreMountTests {
  @Test func `a full disk loses nothing and the store continues once there is room`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.gz"
    let store = try await CompressedFileStore<Int>(path: path)
    let ballast = "\(disk.path)/ballast"
    try Data(count: 128 << 10).write(to: URL(fileURLWithPath: ballast))
    var written = 0
    while written < 4_000 {
      do {
        try await store.setValue(written, forKey: StoreKey(integer: written))
      } catch let error as StoreError {
        #expect(error.code == .full && error.outcome == .nothingChanged)
        break
      }
      written += 1
    }
    #expect(written > 100 && written < 4_000)
    let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
    await expectStoreError(.full) { try await store.setValue(-1, forKey: "more") }
    await expectStoreError(.full) { try await store.compact() }
    #expect(try store.count(in: .all) == written)
    #expect(try store.value(forKey: StoreKey(integer: written - 1)) == written - 1)
    #expect(try await store.verify().findings.isEmpty)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == size)

    try FileManager.default.removeItem(atPath: ballast)
    try await store.setValue(-1, forKey: "more")
    try await store.compact()
    try await store.close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count < size / 4)
    let again = try await CompressedFileStore<Int>(path: path)
    #expect(try again.count(in: .all) == written + 1)
    try await again.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path).sorted() == ["store.gz", "store.gz.lock"])
  }

  @Test func `a read only disk is not permitted`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.gz"
    let store = try await CompressedFileStore<String>(path: path)
    try await store.setValue("v", forKey: "k")
    try await store.close()
    let content = try Data(contentsOf: URL(fileURLWithPath: path))
    try disk.makeReadOnly()
    await expectStoreError(.notPermitted) { _ = try await CompressedFileStore<String>(path: path) }
    await expectStoreError(.notPermitted) { _ = try await CompressedFileStore<String>(path: path + "x") }
    for access in [StoreAccess.readOnly, .immutable] {
      let reader = try await CompressedFileStore<String>(path: path, access: access)
      #expect(try reader.value(forKey: "k") == "v")
      await expectStoreError(.notPermitted) { try await reader.setValue("w", forKey: "k") }
      try await reader.close()
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == content)
  }

  @Test func `a file that is mounted by itself is refused`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let (path, mounted) = ("\(disk.path)/store.gz", "\(disk.path)/mounted.gz")
    try await CompressedFileStore<String>(path: path).close()
    try Data().write(to: URL(fileURLWithPath: mounted))
    #expect(try CommandRun(["mount", "--bind", path, mounted]).status == 0)
    let error = await expectStoreError(.unsupported) { _ = try await CompressedFileStore<String>(path: mounted) }
    #expect(error?.message.contains("mount its folder") == true)
    #expect(!FileManager.default.fileExists(atPath: mounted + ".lock"))
    #expect(try CommandRun(["umount", mounted]).status == 0)
  }

  @Test func `root leaves the files with their owner`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.gz"
    func owners(of path: String) throws -> [Int] {
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      return [FileAttributeKey.ownerAccountID, .groupOwnerAccountID].compactMap { attributes[$0] as? Int }
    }
    try await CompressedFileStore<String>(path: path).close()
    try FileManager.default.removeItem(atPath: path + ".lock")
    #expect(try CommandRun(["chown", "65534:65533", path]).status == 0)
    let store = try await CompressedFileStore<String>(path: path)
    #expect(try owners(of: path + ".lock") == [65534, 65533])
    try await store.setValue("v", forKey: "k")
    try await store.compact()
    try await store.close()
    #expect(try owners(of: path) == [65534, 65533])
  }
}
#endif
