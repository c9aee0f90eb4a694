#if LMDB
import Foundation
import Larder
import LarderCBOR
import TestSupport
import Testing

@testable import LarderLMDB

/// Environments that are opened for reading only.
@Suite struct ReadOnlyTests {
  private func makeStore(_ path: String) async throws {
    let store = try await LMDBStore<Int>(path: path)
    try await store.setValue(1, forKey: "k")
    try await store.close()
  }

  /// Every file in a folder, with its permissions, owner and modification time.
  private func state(_ path: String) throws -> [String: [Int]] {
    var state: [String: [Int]] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) where !name.hasSuffix("lock.mdb") {
      var status = stat()
      #expect(stat("\(path)/\(name)", &status) == 0)
      state[name] = [Int(status.st_mode), Int(status.st_uid), Int(status.st_size), Int(status.st_ino)]
    }
    return state
  }

  @Test(arguments: [StoreAccess.readOnly, .immutable]) func `every write is refused and nothing changes`(
    access: StoreAccess
  ) async throws {
    let folder = try TemporaryFolder()
    try await makeStore(folder.path("environment"))
    let before = try state(folder.path)
    let data = try Data(contentsOf: URL(filePath: folder.path("environment/data.mdb")))
    let environment = try await LMDBEnvironment(path: folder.path("environment"), access: access)
    let store = try await LMDBStore<Int>(in: environment)
    #expect(store.information.access == access)
    #expect(try store.value(forKey: "k") == 1)
    #expect(try await environment.storeNames() == ["default"])
    let bodies = Tally()
    await expectStoreError(.notPermitted) { try await store.setValue(2, forKey: "k") }
    await expectStoreError(.notPermitted) { try await store.apply([]) }
    await expectStoreError(.notPermitted) { try await store.update("k") { _ in bodies.add() } }
    await expectStoreError(.notPermitted) { try await environment.write { _ in bodies.add() } }
    await expectStoreError(.notFound) { try await LMDBStore<Int>(in: environment, name: "new") }
    #expect(bodies.count == 0)
    #expect(try await environment.statistics().pageCount > 0)
    #expect(try environment.handle.environment.readers.clearStaleSlots() == 0)
    #expect(try await store.verify().entryCount == 1)
    try await environment.synchronize()
    for other in StoreAccess.allCases where other != access {
      let error = await expectStoreError(.locked) {
        try await LMDBEnvironment(path: folder.path("environment"), access: other)
      }
      #expect(error?.description.contains("access") == true)
    }
    try await environment.close()
    #expect(try state(folder.path) == before)
    #expect(try Data(contentsOf: URL(filePath: folder.path("environment/data.mdb"))) == data)
  }

  @Test func `a reader sees writes of another process`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<Int>(path: folder.path("environment"))
    try await store.setValue(5, forKey: "k")
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let store = try await LMDBStore<Int>(path: "\(path)/environment", access: .readOnly)
      #expect(try store.value(forKey: "k") == 5)
      try await store.close()
    }
    try await store.close()
  }

  @Test func `only immutable files are read without a lock file`() async throws {
    let folder = try TemporaryFolder()
    try await makeStore(folder.path("environment"))
    #expect(unlink(folder.path("environment/lock.mdb")) == 0)
    let error = await expectStoreError(.notPermitted) {
      try await LMDBEnvironment(path: folder.path("environment"), access: .readOnly)
    }
    #expect(error?.description.contains("lock.mdb is missing") == true)
    #expect(error?.description.contains("immutable") == true)
    let store = try await LMDBStore<Int>(path: folder.path("environment"), access: .immutable)
    #expect(try store.value(forKey: "k") == 1)
    try await store.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("environment")) == ["data.mdb"])
  }

  @Test(arguments: [StoreAccess.readOnly, .immutable]) func `nothing is created`(access: StoreAccess) async throws {
    let folder = try TemporaryFolder()
    try Data().write(to: URL(filePath: folder.path("empty")))
    for path in ["missing", "empty"] {
      await expectStoreError(.notFound) { try await LMDBEnvironment(path: folder.path(path), access: access) }
    }
    #expect(try folder.names == ["empty"])
  }

  @Test func `the provider uses the access`() async throws {
    let folder = try TemporaryFolder()
    try await makeStore(folder.path("environment"))
    let url = try StoreURL("lmdb:\(folder.path("environment"))")
    let options = StoreOptions(access: .readOnly)
    let store = try await LMDBStoreProvider().open(url, options: options, newCodecName: nil).typed(
      codec: .cbor(Int.self))
    #expect(store.information.access == .readOnly)
    try await store.close()
  }

  @Test(
    .enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"),
    arguments: [true, false])
  func `a read only mount is read`(hasLockFile: Bool) async throws {
    let disk = try TemporaryFileSystem(size: "4m")
    let path = "\(disk.path)/environment"
    try await makeStore(path)
    if !hasLockFile { #expect(unlink(path + "/lock.mdb") == 0) }
    try disk.makeReadOnly()
    for access in [StoreAccess.readOnly, .immutable] {
      let store = try await LMDBStore<Int>(path: path, access: access)
      #expect(try store.value(forKey: "k") == 1)
      try await store.close()
    }
  }

  @Test(.enabled(if: geteuid() == 0, "to become another user takes root")) func `the files of another user are read`()
    async throws
  {
    let folder = try TemporaryFolder()
    for (name, lockMode) in [("open", 0o666), ("closed", 0o644)] {
      try await makeStore(folder.path(name))
      #expect(chmod(folder.path(name), 0o755) == 0)
      #expect(chmod(folder.path("\(name)/data.mdb"), 0o644) == 0)
      #expect(chmod(folder.path("\(name)/lock.mdb"), mode_t(lockMode)) == 0)
    }
    #expect(chmod(folder.path, 0o755) == 0)
    let before = try state(folder.path)
    await #expect(processExitsWith: .success) { [root = folder.path as String] in
      try await withoutRootPrivileges {
        let open = try await LMDBStore<Int>(path: "\(root)/open", access: .readOnly)
        #expect(try open.value(forKey: "k") == 1)
        try await open.close()
        let error = await expectStoreError(.notPermitted) {
          try await LMDBEnvironment(path: "\(root)/closed", access: .readOnly)
        }
        #expect(error?.description.contains("lock.mdb cannot be written") == true)
        let immutable = try await LMDBStore<Int>(path: "\(root)/closed", access: .immutable)
        #expect(try immutable.value(forKey: "k") == 1)
        try await immutable.close()
      }
    }
    #expect(try state(folder.path) == before)
  }

  /// A user who may write to the data file may also write to a lock file that root has created.
  @Test(.enabled(if: geteuid() == 0, "to give files away takes root"))
  func `a lock file gets the owner of the data file`()
    async throws
  {
    let folder = try TemporaryFolder()
    try await makeStore(folder.path("environment"))
    let (data, lock) = (folder.path("environment/data.mdb"), folder.path("environment/lock.mdb"))
    #expect(unlink(lock) == 0)
    #expect(chown(data, 65534, 65534) == 0 && chmod(data, 0o660) == 0)
    try await makeStore(folder.path("environment"))
    var status = stat()
    #expect(stat(lock, &status) == 0)
    #expect(status.st_uid == 65534 && status.st_gid == 65534 && status.st_mode & 0o777 == 0o660)
  }
}
#endif
