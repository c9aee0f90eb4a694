import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// Stores that are opened while their disk has no room left, after a restart.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct FullDiskOpeningTests {
  /// Fills a file system to the last byte.
  private func fill(_ disk: TemporaryFileSystem) throws {
    let path = "\(disk.path)/ballast"
    try Data().write(to: URL(filePath: path))
    let descriptor = open(path, O_WRONLY | O_APPEND)
    defer { close(descriptor) }
    let block = [UInt8](repeating: 1, count: 4096)
    while write(descriptor, block, block.count) > 0 {}
    #expect(errno == ENOSPC)
  }

  @Test(arguments: StoreFilesTests.Format.allCases) func aStoreIsReadAndBackedUpElsewhere(
    _ format: StoreFilesTests.Format
  ) async throws {
    let disk = try TemporaryFileSystem(size: "4m")
    let folder = try TemporaryFolder()
    let path = "\(disk.path)/store"
    let filled = try await format.open(path)
    for number in 0..<50 {
      try await filled.setValue(String(repeating: "x", count: 1000), forKey: StoreKey("\(number)"))
    }
    try await filled.close()
    try fill(disk)
    let accesses: [StoreAccess] = format == .sqlite ? [.immutable] : [.immutable, .readOnly, .readWrite]
    for access in accesses {
      let store = try await format.open(path, access: access)
      #expect(try await store.count(in: .all) == 50)
      #expect(try await store.value(forKey: "7")?.count == 1000)
      #expect(try await store.verify().findings.isEmpty)
      try await store.backup(to: folder.path("\(access)"))
      if access == .readWrite {
        do {
          try await store.removeValue(forKey: "7")
        } catch let error as StoreError {
          // Only a queue has room reserved for removing.
          #expect(format != .queue && error.code == .full && error.outcome == .nothingChanged && error.isRetryable)
        }
      }
      try await store.close()
      let copy = try await format.open(folder.path("\(access)"))
      #expect(try await copy.count(in: .all) == 50)
      try await copy.close()
    }
  }
}
