#if LMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Files that are moved, removed or replaced while an environment is open.
///
/// It stops writing.
@Suite struct MovedFilesTests {
  /// A change to the files at a path.
  enum Event: CaseIterable {
    case lockRemoved, lockReplaced, dataRemoved, dataReplaced, folderMoved, folderReplaced, parentReplaced

    func happen(in root: String) throws {
      let files = FileManager.default
      let folder = root + "/parent/environment"
      switch self {
      case .lockRemoved: try files.removeItem(atPath: folder + "/lock.mdb")
      case .lockReplaced:
        try files.moveItem(atPath: folder + "/lock.mdb", toPath: root + "/old")
        try files.copyItem(atPath: root + "/copy/lock.mdb", toPath: folder + "/lock.mdb")
      case .dataRemoved: try files.removeItem(atPath: folder + "/data.mdb")
      case .dataReplaced:
        guard rename(root + "/copy/data.mdb", folder + "/data.mdb") == 0 else { throw LMDBError(code: errno) }
      case .folderMoved: try files.moveItem(atPath: folder, toPath: root + "/old")
      case .folderReplaced:
        try files.moveItem(atPath: folder, toPath: root + "/old")
        try files.moveItem(atPath: root + "/copy", toPath: folder)
      case .parentReplaced:
        try files.moveItem(atPath: root + "/parent", toPath: root + "/old")
        try files.createDirectory(atPath: root + "/parent", withIntermediateDirectories: false)
        try files.moveItem(atPath: root + "/copy", toPath: folder)
      }
    }
  }

  @Test(arguments: Event.allCases, Durability.File.allCases) func `writes stop`(
    event: Event, durability: Durability.File
  ) async throws {
    let folder = try TemporaryFolder()
    for path in ["parent", "copy"] {
      try FileManager.default.createDirectory(atPath: folder.path(path), withIntermediateDirectories: false)
    }
    let other = try await LMDBStore<Int>(path: folder.path("copy"), codec: .json())
    try await other.setValue(7, forKey: "theirs")
    try await other.close()
    let copy = try Data(contentsOf: URL(filePath: folder.path("copy/data.mdb")))
    let path = folder.path("parent/environment")
    let environment = try await LMDBEnvironment(path: path, durability: durability)
    let store = try await LMDBStore<Int>(in: environment, codec: .json())
    try await store.setValue(1, forKey: "ours")
    try event.happen(in: folder.path)
    let bodies = Tally()
    for _ in 0..<2 {
      for error in [
        await expectStoreError(.conflict) { try await store.setValue(2, forKey: "ours") },
        await expectStoreError(.conflict) { try await store.update("ours") { _ in bodies.add() } },
        await expectStoreError(.conflict) {
          try await environment.write { try $0.setValue(3, forKey: "a", in: store) }
        },
      ] {
        #expect(error?.outcome == .nothingChanged)
        #expect(error?.description.contains(".mdb") == true)
      }
    }
    #expect(bodies.count == 0)
    // Entries can still be read and backed up.
    #expect(try await store.entries(in: .all, limit: 9, order: .ascending).map(\.value) == [1])
    try await environment.backup(to: folder.path("backup"))
    await expectStoreError(.conflict) { try await environment.close() }
    await expectStoreError(.closed) { try await store.setValue(2, forKey: "ours") }
    if [.dataReplaced, .folderReplaced, .parentReplaced].contains(event) {
      #expect(try Data(contentsOf: URL(filePath: path + "/data.mdb")) == copy)
    }
    let saved = try await LMDBStore<Int>(path: folder.path("backup"), codec: .json())
    #expect(try saved.value(forKey: "ours") == 1)
    try await saved.close()
  }

  @Test func `files that come back are not written`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<Int>(path: folder.path("environment"), codec: .json())
    #expect(rename(folder.path("environment"), folder.path("elsewhere")) == 0)
    await expectStoreError(.conflict) { try await store.setValue(1, forKey: "k") }
    #expect(rename(folder.path("elsewhere"), folder.path("environment")) == 0)
    await expectStoreError(.conflict) { try await store.setValue(1, forKey: "k") }
    await expectStoreError(.conflict) { try await store.synchronize() }
    // The files are back at their path, so closing succeeds.
    try await store.close()
    let again = try await LMDBStore<Int>(path: folder.path("environment"), codec: .json())
    try await again.setValue(1, forKey: "k")
    try await again.close()
  }

  @Test(arguments: Obstruction.allCases, Durability.File.allCases) func `files that cannot be examined are not written`(
    obstruction: Obstruction, durability: Durability.File
  ) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path, durability: durability)
    let store = try await LMDBStore<Int>(in: environment, codec: .json())
    try await store.setValue(1, forKey: "k")
    let bodies = Tally()
    try await obstruction.replacing(path) {
      for error in [
        await expectStoreError(.ioFailed) { try await store.setValue(2, forKey: "k") },
        await expectStoreError(.ioFailed) { try await store.update("k") { _ in bodies.add() } },
        await expectStoreError(.ioFailed) { try await environment.write { try $0.removeAll(of: store) } },
        await expectStoreError(.ioFailed) { try await environment.synchronize() },
      ] {
        #expect(error?.outcome == .nothingChanged && error?.message.contains("could not be checked") == true)
      }
      let value = try store.value(forKey: "k")
      #expect(bodies.count == 0 && value == 1)
    }
    // The same files are there again.
    try await store.setValue(3, forKey: "k")
    try await obstruction.replacing(path) {
      await expectStoreError(.ioFailed) { try await environment.close() }
    }
    let again = try await LMDBStore<Int>(path: path, codec: .json())
    #expect(try again.value(forKey: "k") == 3)
    try await again.close()
  }

  @Test func `files that move during a transaction are not written`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let store = try await LMDBStore<Int>(in: environment, codec: .json())
    let (old, new) = (folder.path("environment/lock.mdb"), folder.path("lock"))
    await expectStoreError(.conflict) {
      try await environment.write { transaction in
        try transaction.setValue(1, forKey: "k", in: store)
        #expect(rename(old, new) == 0)
      }
    }
    #expect(try store.value(forKey: "k") == nil)
    await expectStoreError(.conflict) { try await environment.close() }
  }

  /// Opening and closing the lock file of an open environment would release the process's locks on it.
  @Test func `a replaced data file is not opened alongside the old one`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    try await environment.backup(to: folder.path("backup"))
    #expect(rename(folder.path("backup/data.mdb"), path + "/data.mdb") == 0)
    let error = await expectStoreError(.locked) { try await LMDBEnvironment(path: path) }
    #expect(error?.description.contains("still") == true)
    await expectStoreError(.conflict) { try await environment.close() }
    let again = try await LMDBEnvironment(path: path)
    try await again.close()
  }
}
#endif
