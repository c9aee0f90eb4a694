#if LMDB
import Foundation
import Larder
import LarderLMDB
import TestSupport
import Testing

/// Readers whose files are replaced, and content that is exchanged in place.
@Suite(.timeLimit(.minutes(10))) struct ExchangedFilesTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("environment") }

  init() throws {
    folder = try TemporaryFolder()
  }

  private func makeStore(_ value: Int, at path: String) async throws {
    let store = try await LMDBStore<Int>(path: path)
    try await store.setValue(value, forKey: "key")
    try await store.close()
  }

  /// Reads until an error is thrown.
  private func firstError(_ read: () throws -> Void) throws -> StoreError {
    while true {
      do {
        try read()
      } catch let error as StoreError {
        return error
      }
    }
  }

  @Test func `a reader notices a replaced file`() async throws {
    try await makeStore(1, at: path)
    try await makeStore(2, at: folder.path("new"))
    let store = try await LMDBStore<Int>(path: path, access: .readOnly)
    #expect(try store.value(forKey: "key") == 1)
    #expect(rename(folder.path("new/data.mdb"), path + "/data.mdb") == 0)
    let error = try firstError {
      let value = try store.value(forKey: "key")
      #expect(value == 1)
    }
    #expect(error.code == .conflict)
    #expect(error.message.contains("data.mdb") && error.message.contains("was replaced"))
    // The old entries can still be saved.
    try await store.backup(to: folder.path("backup"))
    try await store.close()
    let again = try await LMDBStore<Int>(path: path, access: .readOnly)
    #expect(try again.value(forKey: "key") == 2)
    try await again.close()
  }

  @Test(arguments: Obstruction.allCases) func `a reader whose file cannot be examined continues once it can be`(
    _ obstruction: Obstruction
  ) async throws {
    try await makeStore(1, at: path)
    let store = try await LMDBStore<Int>(path: path, access: .readOnly)
    try await obstruction.replacing(path) {
      let error = expectStoreError(.ioFailed) { try store.value(forKey: "key") }
      #expect(error?.operation == .value && error?.message.contains("could not be checked") == true)
    }
    #expect(try store.value(forKey: "key") == 1)
    try await store.close()
  }

  @Test(arguments: [StoreAccess.readOnly, .readWrite], [true, false]) func `observations end with the files`(
    access: StoreAccess, isReplaced: Bool
  ) async throws {
    try await makeStore(1, at: path)
    try await makeStore(2, at: folder.path("new"))
    let store = try await LMDBStore<Int>(path: path, access: access)
    let (events, event) = AsyncStream.makeStream(of: StoreEvent.self)
    let observation = store.observe(.all) { event.yield($0) }
    let data = path + "/data.mdb"
    #expect(isReplaced ? rename(folder.path("new/data.mdb"), data) == 0 : unlink(data) == 0)
    for await event in events where event == .closed { break }
    if access == .readWrite {
      await expectStoreError(.conflict) { try await store.close() }
    } else {
      try await store.close()
    }
    withExtendedLifetime(observation) {}
  }

  /// Writes content over a file, as `cp` does.
  private func exchange(_ path: String, for content: Data) throws {
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.write(contentsOf: content)
    try file.close()
  }

  @Test func `a writer refuses an older state that was written over the file`() async throws {
    let store = try await LMDBStore<Int>(path: path)
    try await store.setValue(1, forKey: "old")
    let old = try Data(contentsOf: URL(filePath: path + "/data.mdb"))
    for number in 0..<20 { try await store.setValue(number, forKey: "new") }
    try exchange(path + "/data.mdb", for: old)
    for _ in 0..<2 {
      let error = await expectStoreError(.conflict) { try await store.setValue(2, forKey: "lost") }
      #expect(error?.outcome == .nothingChanged && error?.message.contains("older state") == true)
    }
    await expectStoreError(.conflict) { try await store.synchronize() }
    #expect(try Data(contentsOf: URL(filePath: path + "/data.mdb")).prefix(old.count) == old)
    try? await store.close()
    let again = try await LMDBStore<Int>(path: path)
    #expect(try again.value(forKey: "old") == 1 && again.value(forKey: "new") == nil)
    try await again.setValue(3, forKey: "new")
    try await again.close()
  }

  @Test func `a reader refuses a file that lacks the latest transaction`() async throws {
    try await makeStore(1, at: path)
    let old = try Data(contentsOf: URL(filePath: path + "/data.mdb"))
    let store = try await LMDBStore<Int>(path: path, access: .readOnly)
    #expect(try store.value(forKey: "key") == 1)
    await #expect(processExitsWith: .success) { [path = path as String] in
      let writer = try await LMDBStore<Int>(path: path)
      for number in 0..<20 { try await writer.setValue(number, forKey: "key") }
      try await writer.close()
    }
    #expect(try store.value(forKey: "key") == 19)
    await #expect(processExitsWith: .success) { [path = path as String] in
      let writer = try await LMDBStore<Int>(path: path)
      try await writer.setValue(20, forKey: "key")
      try await writer.close()
    }
    try exchange(path + "/data.mdb", for: old)
    let error = try firstError { _ = try store.value(forKey: "key") }
    #expect(error.code == .conflict)
    try await store.close()
  }

  // MARK: Overlay file systems

  /// An overlay file system over a folder, as containers have it over their images.
  private final class Overlay: Sendable {
    let path: String

    /// The reason why it is missing here, or `nil`.
    static let obstacle: String? = {
      #if os(Linux)
      guard geteuid() == 0 else { return "mounting an overlay takes root" }
      do {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path("lower"), withIntermediateDirectories: false)
        _ = try Overlay(over: folder.path("lower"), in: folder)
        return nil
      } catch {
        return "this system does not let root mount an overlay"
      }
      #else
      return "there is no overlay file system here"
      #endif
    }()

    init(over lower: String, in folder: TemporaryFolder) throws {
      let disk = try TemporaryFileSystem(size: "8m")
      self.disk = disk
      path = folder.path("merged")
      for path in [disk.path + "/upper", disk.path + "/work", path] {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      }
      let run = try CommandRun([
        "mount", "-t", "overlay", "overlay", "-o",
        "lowerdir=\(lower),upperdir=\(disk.path)/upper,workdir=\(disk.path)/work", path,
      ])
      struct Failed: Error { let errors: String }
      guard run.status == 0 else { throw Failed(errors: run.errors) }
    }

    private let disk: TemporaryFileSystem

    deinit {
      do {
        _ = try CommandRun(["umount", path])
      } catch {
        print("could not unmount \(path): \(error)")
      }
    }
  }

  /// Without the copy-up, the reader has the file of the lower layer open, and the lock file of the upper one.
  @Test(.enabled(if: Overlay.obstacle == nil, "\(Overlay.obstacle ?? "")"))
  func `a reader on an overlay sees the first write of another process`() async throws {
    let lower = folder.path("lower")
    try FileManager.default.createDirectory(atPath: lower, withIntermediateDirectories: false)
    try await makeStore(1, at: lower + "/environment")
    let overlay = try Overlay(over: lower, in: folder)
    let path = overlay.path + "/environment"
    let store = try await LMDBStore<Int>(path: path, access: .readOnly)
    #expect(try store.value(forKey: "key") == 1)
    for round in 2..<5 {
      await #expect(processExitsWith: .success) { [path = path as String, round = round as Int] in
        let writer = try await LMDBStore<Int>(path: path)
        try await writer.setValue(round, forKey: "key")
        try await writer.close()
      }
      #expect(try store.value(forKey: "key") == round)
    }
    try await store.close()
    withExtendedLifetime(overlay) {}
  }
}
#endif
