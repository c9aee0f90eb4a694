#if LMDB
import CLMDB
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// Backups, verification and names.
@Suite struct MaintenanceTests {
  private func permissions(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  /// Opens an environment as a folder or a file, with two stores.
  ///
  /// One of them has lost most of its entries.
  private func environment(_ path: String, isFolder: Bool) async throws -> LMDBEnvironment {
    if !isFolder { try Data().write(to: URL(filePath: path)) }
    let environment = try await LMDBEnvironment(path: path, durability: .buffered)
    for name in ["default", "other"] {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      try await store.apply(
        ChangeBatch((0..<300).map { .set(StoreKey(integer: $0), [UInt8](repeating: UInt8($0 % 256), count: 2000)) }))
      if name == "other" { try await store.removeAll(in: StoreKey(integer: 10)..<StoreKey(integer: 290)) }
    }
    return environment
  }

  @Test(arguments: [true, false], [true, false]) func `a backup is a complete environment`(
    isFolder: Bool, compacting: Bool
  ) async throws {
    let folder = try TemporaryFolder()
    let environment = try await environment(folder.path("environment"), isFolder: isFolder)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let isDone = Flag()
    let writing = Task {
      var count = 0
      while !isDone.isSet {
        try await store.apply([.set("left", [UInt8(count % 256)]), .set("right", [UInt8(count % 256)])])
        count += 1
      }
    }
    for round in 0..<3 {
      let path = folder.path("backup \(round)")
      try await environment.backup(to: path, compacting: compacting)
      let data = isFolder ? path + "/data.mdb" : path
      #expect(try permissions(data) == 0o600)
      if isFolder { #expect(try permissions(path) == 0o700) }
      let copy = try await LMDBEnvironment(path: path, createsIfMissing: false)
      #expect(try await copy.storeNames() == ["default", "other"])
      if compacting { #expect(try await copy.statistics().freePageCount == 0) }
      let copied = try await LMDBStore<[UInt8]>(in: copy, codec: .raw, createsIfMissing: false)
      let sides = try await copied.values(forKeys: ["left", "right"])
      #expect(sides[0] == sides[1])
      let report = try await copied.verify()
      #expect(report.findings.isEmpty && report.entryCount >= 300)
      let other = try await LMDBStore<[UInt8]>(in: copy, name: "other", codec: .raw, createsIfMissing: false)
      #expect(try other.count(in: .all) == 20)
      // The backup is a store like any other.
      try await copied.setValue([1], forKey: "new")
      try await copy.close()
    }
    isDone.set()
    try await writing.value
    try await environment.close()
    let expected = ["backup 0", "backup 1", "backup 2", "environment"]
    #expect(try folder.names.filter { !$0.hasSuffix("-lock") } == expected)
  }

  @Test(arguments: [true, false]) func `a backup is read without creating a file`(isFolder: Bool) async throws {
    let folder = try TemporaryFolder()
    let environment = try await environment(folder.path("environment"), isFolder: isFolder)
    let path = folder.path("backup")
    let lock = isFolder ? "\(path)/lock.mdb" : "\(path)-lock"
    try await environment.backup(to: path)
    try await environment.close()
    #expect(try permissions(lock) == 0o600)
    let before = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
    let copy = try await LMDBStore<[UInt8]>(path: path, codec: .raw, access: .readOnly)
    #expect(try copy.count(in: .all) == 300)
    try await copy.close()
    #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted() == before)
  }

  @Test func `a compacting backup is smaller`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await environment(folder.path("environment"), isFolder: false)
    try await environment.backup(to: folder.path("plain"))
    try await environment.backup(to: folder.path("compact"), compacting: true)
    func size(_ name: String) throws -> Int {
      try Data(contentsOf: URL(filePath: folder.path(name))).count
    }
    let statistics = try await environment.statistics()
    #expect(statistics.freePageCount > 100)
    #expect(try size("plain") == statistics.pageCount * statistics.pageSize)
    #expect(try size("compact") <= (statistics.pageCount - statistics.freePageCount) * statistics.pageSize)
    try await environment.close()
  }

  @Test func `a backup replaces nothing`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await environment(folder.path("environment"), isFolder: true)
    try Data("text".utf8).write(to: URL(filePath: folder.path("file")))
    try FileManager.default.createDirectory(atPath: folder.path("folder"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: "nowhere")
    for name in ["file", "folder", "link", "environment", "folder/", "environment/data.mdb"] {
      let error = await expectStoreError(.invalidArgument) { try await environment.backup(to: folder.path(name)) }
      #expect(error?.operation == .backup)
    }
    await expectStoreError(.ioFailed) { try await environment.backup(to: folder.path("missing/backup")) }
    await expectStoreError(.invalidArgument) { try await environment.backup(to: folder.path("a\0b")) }
    try await environment.backup(to: folder.path("slash/"))
    #expect(try folder.names == ["environment", "file", "folder", "link", "slash"])
    #expect(try String(contentsOfFile: folder.path("file"), encoding: .utf8) == "text")
    try await environment.close()
  }

  @Test func `a stores backup is of its whole environment`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await environment(folder.path("environment"), isFolder: true)
    let store = AnyDataStore(try await LMDBStore<[UInt8]>(in: environment, codec: .raw))
    let maintenance = try #require(store.maintenance)
    try await maintenance.backup(to: folder.path("backup"))
    await expectStoreError(.unsupported) { try await maintenance.compact() }
    let copy = try await LMDBEnvironment(path: folder.path("backup"), createsIfMissing: false)
    #expect(try await copy.storeNames() == ["default", "other"])
    try await copy.close()
    try await environment.close()
  }

  /// Maintenance that is running, such as a backup, may take minutes.
  @Test func `closing and statistics do not wait for maintenance`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await environment(folder.path("environment"), isFolder: true)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let held = HeldRead()
    let shared = environment.handle.environment
    let maintaining = Task { await shared.maintenanceQueue.run { held.hold() } }
    await held.isHeld()
    _ = try await environment.statistics()
    try await store.close()
    held.release()
    await maintaining.value
    try await environment.close()
  }

  @Test func `verification names undecodable entries and continues`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let store = try await LMDBStore<Int>(in: environment, codec: .json())
    try await store.apply(ChangeBatch((0..<2500).map { .set(StoreKey(integer: $0), $0) }))
    let damaged = [StoreKey(integer: 0), StoreKey(integer: 999), StoreKey(integer: 1000), StoreKey(integer: 2499)]
    let identifier = store.identifier
    let handle = environment.handle
    try await handle.environment.writer.write(for: handle, during: .write) { transaction, _ in
      for key in damaged {
        try RawDatabase(transaction: transaction, identifier: identifier).setValue([0xFF, 0x00], forKey: key)
      }
      return .commit(())
    }
    let report = try await store.verify()
    #expect(report.entryCount == 2500)
    #expect(report.findings.map(\.key) == damaged)
    #expect(report.findings.allSatisfy { $0.message.contains("decode") })
    for key in damaged {
      let error = expectStoreError(.corrupted) { try store.value(forKey: key) }
      #expect(error?.key == key)
    }
    #expect(try store.value(forKey: StoreKey(integer: 1)) == 1)
    #expect(try store.count(in: .all) == 2500)
    // Damaged entries can be overwritten and removed.
    try await store.setValue(5, forKey: damaged[0])
    try await store.removeValue(forKey: damaged[1])
    #expect(try await store.verify().findings.map(\.key) == Array(damaged[2...]))
    try await environment.close()
  }

  @Test func `an unreadable record is damage`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    _ = try await LMDBStore<Int>(in: environment, codec: .json())
    _ = try await LMDBStore<Int>(in: environment, name: "other", codec: .json())
    for (record, code) in [
      ("no record", StoreError.Code.corrupted), (#"{"codec":"json","format":2}"#, .versionMismatch),
    ] {
      let handle = environment.handle
      try await handle.environment.writer.write(for: handle, during: .write) { transaction, _ in
        var identifier: MDB_dbi = 0
        try LMDBError.check(mdb_dbi_open(transaction, StoreCatalog.name, 0, &identifier))
        let records = RawDatabase(transaction: transaction, identifier: identifier)
        try records.setValue(Array(record.utf8), forKey: "default")
        return .commit(())
      }
      await expectStoreError(code) { try await LMDBStore<Int>(in: environment, codec: .json()) }
      await expectStoreError(code) {
        try await LMDBStore<Int>(in: environment, codec: .json(), createsIfMissing: false)
      }
      _ = try await LMDBStore<Int>(in: environment, name: "other", codec: .json())
    }
    try await environment.close()
  }
}
#endif
