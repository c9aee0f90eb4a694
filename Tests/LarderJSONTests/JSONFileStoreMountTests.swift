import Foundation
import Larder
import LarderJSON
import TestSupport
import Testing

/// What only a real file system that is full, or read-only, can tell.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct JSONFileStoreMountTests {
  private func code(_ body: () async throws -> Void) async throws -> StoreError.Code? {
    do {
      try await body()
      return nil
    } catch let error as StoreError {
      return error.code
    }
  }

  @Test func aFullDiskLosesNothingAndTheStoreGoesOnOnceThereIsRoom() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let store = try await JSONFileStore<String>(path: "\(disk.path)/store.json")
    let ballast = "\(disk.path)/ballast"
    try Data(count: 128 << 10).write(to: URL(fileURLWithPath: ballast))
    let value = String(repeating: "x", count: 8 << 10)
    var written = 0
    while written < 100 {
      let failure = try await code { try await store.setValue(value, forKey: "\(written)") }
      guard failure == nil else {
        #expect(failure == .full)
        break
      }
      written += 1
    }
    #expect(written > 4 && written < 32)
    #expect(try store.count(in: .all) == written)
    #expect(try await code { try await store.close() } == .full)
    try FileManager.default.removeItem(atPath: ballast)
    let again = try await JSONFileStore<String>(path: "\(disk.path)/store.json")
    #expect(try again.count(in: .all) == written)
    try await again.close()
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: disk.path).sorted() == ["store.json", "store.json.lock"])
  }

  @Test func aReadOnlyDiskIsNotPermitted() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.json"
    let store = try await JSONFileStore<String>(path: path)
    try await store.setValue("v", forKey: "k")
    try await store.close()
    let document = try Data(contentsOf: URL(fileURLWithPath: path))
    try disk.makeReadOnly()
    #expect(try await code { _ = try await JSONFileStore<String>(path: path) } == .notPermitted)
    #expect(try await code { _ = try await JSONFileStore<String>(path: path + "x") } == .notPermitted)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == document)
  }
}
