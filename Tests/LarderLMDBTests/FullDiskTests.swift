#if LMDB
import CLMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Tests that need a real file system that is full or read-only.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct FullDiskTests {
  @Test(arguments: [8_000, 300_000]) func `a full disk loses nothing and the store continues once there is room`(
    valueSize: Int
  ) async throws {
    let disk = try TemporaryFileSystem(size: "4m")
    let path = "\(disk.path)/environment"
    try await expectAFullDiskToLoseNothing(disk, valueSize: valueSize) {
      try await LMDBStore<[UInt8]>(path: path, codec: .raw)
    } writingInAnotherWay: { store, value in
      let environment = try await LMDBEnvironment(path: path)
      try await environment.write { try $0.setValue(value, forKey: "d", in: store) }
    }
  }

  @Test func `a new environment needs room`() async throws {
    let disk = try TemporaryFileSystem(size: "256k")
    try Data(count: 256 << 10).write(to: URL(filePath: "\(disk.path)/ballast"))
    await expectStoreError(.full) { try await LMDBEnvironment(path: "\(disk.path)/environment") }
    try FileManager.default.removeItem(atPath: "\(disk.path)/ballast")
    let store = try await LMDBStore<[UInt8]>(path: "\(disk.path)/environment", codec: .raw)
    try await store.setValue([1], forKey: "k")
    try await store.close()
  }

  /// `ulimit -f`, set before the environment is opened or while it is open.
  @Test(arguments: [true, false]) func `a file size limit loses nothing and the store continues`(isSetBefore: Bool)
    async throws
  {
    let folder = try TemporaryFolder()
    await #expect(processExitsWith: .success) {
      [path = folder.path("environment") as String, isSetBefore = isSetBefore as Bool] in
      func setLimit() {
        var limit = rlimit(rlim_cur: 410 << 10, rlim_max: 410 << 10)
        #if canImport(Glibc)
        #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
        #else
        #expect(setrlimit(RLIMIT_FSIZE, &limit) == 0)
        #endif
      }
      if isSetBefore { setLimit() }
      let store = try await LMDBStore<[UInt8]>(path: path, codec: .raw)
      if !isSetBefore { setLimit() }
      var written = 0
      var failure: StoreError?
      while failure == nil && written < 1000 {
        do {
          try await store.setValue([UInt8](repeating: 1, count: 30_000), forKey: StoreKey(integer: written))
          written += 1
        } catch let error as StoreError {
          failure = error
        }
      }
      #expect(written > 2 && written < 1000)
      #expect(failure?.code == .full && failure?.outcome == .nothingChanged && failure?.isRetryable == true)
      #expect(try store.count(in: .all) == written)
      try await store.removeAll()
      try await store.setValue([1], forKey: "small")
      #expect(try store.value(forKey: "small") == [1])
      try await store.close()
    }
  }

  @Test func `a read only disk is not permitted`() async throws {
    let disk = try TemporaryFileSystem(size: "4m")
    let path = "\(disk.path)/environment"
    let store = try await LMDBStore<[UInt8]>(path: path, codec: .raw)
    try await store.setValue([1], forKey: "k")
    try await store.close()
    let data = try Data(contentsOf: URL(filePath: "\(path)/data.mdb"))
    try disk.makeReadOnly()
    await expectStoreError(.notPermitted) { try await LMDBEnvironment(path: path) }
    await expectStoreError(.notPermitted) { try await LMDBEnvironment(path: path + "-new") }
    #expect(try Data(contentsOf: URL(filePath: "\(path)/data.mdb")) == data)
  }
}

#if os(Linux)
/// A disk that cannot sync what was written.
@Suite struct FailingDiskTests {
  /// The system may drop what it could not write, so a later sync that succeeds would mean nothing.
  @Test func `writing stops after a failed sync and the entries can be saved`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    await #expect(processExitsWith: .success) { [path = path as String, backup = folder.path("backup") as String] in
      let environment = try await LMDBEnvironment(path: path, durability: .buffered)
      let store = try await LMDBStore<Int>(in: environment)
      try await store.setValue(1, forKey: "k")
      var descriptor: Int32 = -1
      try LMDBError.check(mdb_env_get_fd(environment.handle.environment.pointer, &descriptor))
      // Such a file cannot be synced.
      let (kept, other) = (dup(descriptor), open("/dev/full", O_RDWR | O_CLOEXEC))
      #expect(dup2(other, descriptor) == descriptor)
      let error = await expectStoreError(.ioFailed) { try await environment.synchronize() }
      #expect(error?.outcome == .unknown)
      #expect(dup2(kept, descriptor) == descriptor)
      let writes: [@Sendable () async throws -> Void] = [
        { try await store.setValue(2, forKey: "k") }, { try await store.update("k") { $0 = 2 } },
        { try await environment.synchronize() }, { try await environment.removeStore("other") },
      ]
      for write in writes {
        let error = await expectStoreError(.ioFailed) { try await write() }
        #expect(error?.outcome == .nothingChanged && error?.message.contains("back up the environment") == true)
        #expect(error?.underlying is LMDBError)
      }
      #expect(try store.value(forKey: "k") == 1)
      try await environment.backup(to: backup)
      await expectStoreError(.ioFailed) { try await environment.close() }
    }
    for path in [path, folder.path("backup")] {
      let store = try await LMDBStore<Int>(path: path)
      #expect(try store.value(forKey: "k") == 1)
      try await store.setValue(2, forKey: "k")
      try await store.close()
    }
  }
}
#endif
#endif
