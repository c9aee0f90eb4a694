#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// Stores that are opened while their disk has no room left, after a restart.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct FullDiskOpeningTests {
  @Test(arguments: StoreFilesTests.Format.allCases) func `a store is read and backed up elsewhere`(
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
    try disk.fill()
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

  /// Removing entries takes little room if it takes any, and the room of the removed ones is used again.
  @Test(arguments: StoreFilesTests.Format.allCases) func `a store is drained once a little room is free`(
    _ format: StoreFilesTests.Format
  ) async throws {
    let disk = try TemporaryFileSystem(size: "4m")
    let path = "\(disk.path)/store"
    var generator = SeededGenerator(seed: 1)
    // Random, so that no store compresses them.
    let values = (0..<500).map { _ in
      (0..<60).map { _ in String(UInt64.random(in: .min ... .max, using: &generator), radix: 16) }.joined()
    }
    let filled = try await format.open(path)
    try await filled.apply(ChangeBatch(values.enumerated().map { .set(StoreKey("\($0)"), $1) }))
    try await filled.close()
    try disk.fill()
    let store = try await format.open(path)
    try disk.free(128 << 10)
    for number in 20..<500 { try await store.removeValue(forKey: StoreKey("\(number)")) }
    #expect(try await store.count(in: .all) == 20)
    // The files of SQLite and LMDB keep their size, and use the room inside of them again.
    if ![.sqlite, .lmdb, .singleFileLMDB].contains(format) { try await store.compact() }
    for number in 20..<150 { try await store.setValue(values[number], forKey: StoreKey("\(number)")) }
    #expect(try await store.verify().findings.isEmpty)
    try await store.close()
    let again = try await format.open(path)
    for number in 0..<150 { #expect(try await again.value(forKey: StoreKey("\(number)")) == values[number]) }
    #expect(try await again.count(in: .all) == 150)
    try await again.close()
  }
}
#endif
