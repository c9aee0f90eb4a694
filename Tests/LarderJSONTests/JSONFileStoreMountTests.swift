import Foundation
import Larder
import LarderJSON
import TestSupport
import Testing

/// Tests that need a real file system that is full or read-only.
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

  @Test func `a full disk loses nothing and the store continues once there is room`() async throws {
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

  @Test func `a read only disk is not permitted`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/store.json"
    let store = try await JSONFileStore<String>(path: path)
    try await store.setValue("v", forKey: "k")
    try await store.close()
    let document = try Data(contentsOf: URL(fileURLWithPath: path))
    do {
      // Releases the store without closing it, as a crash does.
      let store = try await JSONFileStore<String>(path: path)
      try await store.setValue("w", forKey: "k")
    }
    try disk.makeReadOnly()
    let names = try FileManager.default.contentsOfDirectory(atPath: disk.path).sorted()
    for access in [.readOnly, .immutable] as [StoreAccess] {
      let reader = try await JSONFileStore<String>(path: path, access: access)
      #expect(try reader.value(forKey: "k") == "w")
      try await reader.close()
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path).sorted() == names)
    #expect(try await code { _ = try await JSONFileStore<String>(path: path) } == .notPermitted)
    #expect(try await code { _ = try await JSONFileStore<String>(path: path + "x") } == .notPermitted)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == document)
  }

  @Test func `a mounted document is refused`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    for name in ["inner", "outer"] {
      try FileManager.default.createDirectory(atPath: "\(disk.path)/\(name)", withIntermediateDirectories: false)
    }
    let (inner, outer) = ("\(disk.path)/inner/s.json", "\(disk.path)/outer/s.json")
    try await JSONFileStore<String>(path: inner).close()
    try Data().write(to: URL(fileURLWithPath: outer))
    try run("mount", "--bind", inner, outer)
    defer { #expect(throws: Never.self) { try run("umount", outer) } }
    #expect(try await code { _ = try await JSONFileStore<String>(path: outer) } == .unsupported)
    #expect(try FileManager.default.contentsOfDirectory(atPath: "\(disk.path)/outer") == ["s.json"])
    let reader = try await JSONFileStore<String>(path: outer, access: .readOnly)
    #expect(try reader.count(in: .all) == 0)
    try await reader.close()
  }

  @Test func `root keeps the owner of files`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    let path = "\(disk.path)/s.json"
    try await JSONFileStore<String>(path: path).close()
    try FileManager.default.removeItem(atPath: path + ".lock")
    try run("chown", "65534:65533", path)
    try run("chmod", "640", path)
    func owners() throws -> [String: [Int]] {
      var owners: [String: [Int]] = [:]
      for name in try FileManager.default.contentsOfDirectory(atPath: disk.path) {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(disk.path)/\(name)")
        owners[name] = [.ownerAccountID, .groupOwnerAccountID, .posixPermissions].compactMap {
          (attributes[$0] as? NSNumber)?.intValue
        }
      }
      return owners
    }
    let store = try await JSONFileStore<String>(path: path)
    try await store.setValue("v", forKey: "k")
    #expect(
      try owners() == [
        "s.json": [65_534, 65_533, 0o640], "s.json.journal": [65_534, 65_533, 0o640],
        "s.json.lock": [65_534, 65_533, 0o640],
      ])
    try await store.close()
    #expect(try owners() == ["s.json": [65_534, 65_533, 0o640], "s.json.lock": [65_534, 65_533, 0o640]])
  }

  private func run(_ command: String...) throws {
    try #require(try CommandRun(command).status == 0, "\(command)")
  }
}
