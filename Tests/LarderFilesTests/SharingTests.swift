import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Readers and writers, several users, and mounted files.
@Suite struct SharingTests {
  private let folder: TemporaryFolder
  private let fileSystem = POSIXFileSystem()

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test func `readers share a lock and keep writers out`() throws {
    let path = folder.path("lock")
    let writer = try #require(try FileLock.acquire(path, in: fileSystem))
    #expect(try FileLock.acquire(path, .shared, in: fileSystem) == nil)
    try writer.release()
    let readers = try (0..<3).map { _ in try #require(try FileLock.acquire(path, .shared, in: fileSystem)) }
    #expect(try FileLock.acquire(path, in: fileSystem) == nil)
    for reader in readers { try reader.release() }
    #expect(try FileLock.acquire(path, in: fileSystem) != nil)
  }

  @Test func `a reader creates no lock`() throws {
    let error = #expect(throws: FileError.self) { try FileLock.acquire(folder.path("lock"), .shared, in: fileSystem) }
    #expect(error?.errorNumber == ENOENT)
    #expect(try folder.names == [])
  }

  @Test func `a lock replaced during its acquisition is acquired again`() throws {
    // The first file is replaced before its lock is examined. The lock on the file at the path counts.
    let disk = SimulatedFileSystem(seed: 1)
    let moving = MovingFileSystem(base: disk, path: "/lock")
    let lock = try #require(try FileLock.acquire("/lock", in: moving))
    #expect(try lock.identity() == disk.attributes(at: "/lock")?.identity)
    #expect(moving.moves == 1)
  }

  @Test func `a lock file gets the permissions of its data`() throws {
    try folder.write("", to: "data")
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: folder.path("data"))
    let guarded = try fileSystem.attributes(at: folder.path("data"))
    _ = try FileLock.acquire(folder.path("lock"), guarding: guarded, in: fileSystem)
    #expect(try fileSystem.attributes(at: folder.path("lock"))?.permissions == 0o644)
    _ = try FileLock.acquire(folder.path("other"), in: fileSystem)
    #expect(try fileSystem.attributes(at: folder.path("other"))?.permissions == 0o600)
  }

  @Test func `creating a file during the path resolution causes no error`() async throws {
    let path = folder.path("data")
    let end = ContinuousClock.now + .milliseconds(300)
    try await withThrowingTaskGroup { group in
      group.addTask {
        while ContinuousClock.now < end {
          try POSIXFileSystem().open(path, .createNew).close()
          try POSIXFileSystem().removeFile(at: path)
        }
      }
      group.addTask {
        while ContinuousClock.now < end { _ = try POSIXFileSystem().canonicalPath(of: path) }
      }
      try await group.waitForAll()
    }
  }

  @Test(.enabled(if: geteuid() == 0, "changing the owner of a file takes root"))
  func `root keeps the owner of a file`() throws {
    try folder.write("old", to: "data")
    let owner = FileAttributes.Owner(user: 4321, group: 1234)
    let old = try fileSystem.open(folder.path("data"), .readWrite)
    try old.setPermissions(0o640)
    try old.setOwner(owner)
    let existing = try old.attributes()
    try fileSystem.replaceFile(at: folder.path("data"), like: existing) { try $0.write("new".utf8) }
    let new = try #require(try fileSystem.attributes(at: folder.path("data")))
    #expect(try folder.text("data") == "new")
    #expect(new.owner == owner && new.permissions == 0o640)
    _ = try FileLock.acquire(folder.path("lock"), guarding: existing, in: fileSystem)
    #expect(try fileSystem.attributes(at: folder.path("lock"))?.owner == owner)
  }

  @Test func `times can be set`() throws {
    let file = try fileSystem.open(folder.path("data"), .createNew)
    try file.setModificationTime(1_700_000_000_000_000_000)
    #expect(try fileSystem.attributes(at: folder.path("data"))?.modificationTime == 1_700_000_000_000_000_000)
  }

  #if os(Linux)
  @Test(.enabled(if: geteuid() == 0, "mounting a file takes root"), arguments: ["data", "with space", "a\\b\tc"])
  func `a mounted file is detected`(_ name: String) throws {
    let path = folder.path(name)
    try folder.write("inside", to: name)
    try folder.write("outside", to: "source")
    #expect(try !fileSystem.isMountPoint(at: path))
    guard mount(folder.path("source"), path, nil, UInt(MS_BIND), nil) == 0 else {
      print("Skipped: this system does not let root mount a file (errno \(errno))")
      return
    }
    defer { umount(path) }
    #expect(try fileSystem.isMountPoint(at: path))
    #expect(try !fileSystem.isMountPoint(at: folder.path("source")))
    #expect(throws: FileError.self) { try fileSystem.rename(folder.path("source"), to: path) }
  }
  #endif
}

/// A file system that moves a file away when it is opened for the first time.
private final class MovingFileSystem: ForwardingFileSystem {
  let base: SimulatedFileSystem
  private let path: String
  private let state = Locked(0)

  /// The number of times the file was opened again after its move.
  var moves: Int { state.withLock { $0 - 1 } }

  init(base: SimulatedFileSystem, path: String) {
    self.base = base
    self.path = path
  }

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    let file = try base.open(path, mode)
    let isFirst = state.withLock { count in
      count += path == self.path ? 1 : 0
      return count == 1
    }
    if isFirst { try base.rename(path, to: path + ".moved") }
    return file
  }
}
