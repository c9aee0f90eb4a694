#if Compression
import Foundation
import Larder
import LarderCompression
import TestSupport
import Testing

/// What only a real file system that is full, or read-only, can tell.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct CompressedFileStoreMountTests {
  @Test func aFullDiskLosesNothingAndTheStoreGoesOnOnceThereIsRoom() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.gz"
    let store = try await CompressedFileStore<Int>(path: path)
    let maintenance = try #require(store.information.maintenance)
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
    await expectStoreError(.full) { try await maintenance.compact() }
    #expect(try store.count(in: .all) == written)
    #expect(try store.value(forKey: StoreKey(integer: written - 1)) == written - 1)
    #expect(try await maintenance.verify().findings.isEmpty)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == size)

    try FileManager.default.removeItem(atPath: ballast)
    try await store.setValue(-1, forKey: "more")
    try await maintenance.compact()
    try await store.close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count < size / 4)
    let again = try await CompressedFileStore<Int>(path: path)
    #expect(try again.count(in: .all) == written + 1)
    try await again.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path).sorted() == ["store.gz", "store.gz.lock"])
  }

  @Test func aReadOnlyDiskIsNotPermitted() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.gz"
    let store = try await CompressedFileStore<String>(path: path)
    try await store.setValue("v", forKey: "k")
    try await store.close()
    let content = try Data(contentsOf: URL(fileURLWithPath: path))
    try disk.makeReadOnly()
    await expectStoreError(.notPermitted) { _ = try await CompressedFileStore<String>(path: path) }
    await expectStoreError(.notPermitted) { _ = try await CompressedFileStore<String>(path: path + "x") }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == content)
  }
}
#endif
