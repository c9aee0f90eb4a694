import Foundation
import TestSupport
import Testing

@testable import LarderFiles

@Suite struct POSIXFileSystemTests {
  let folder: TemporaryFolder
  let fileSystem = POSIXFileSystem()

  init() throws { folder = try TemporaryFolder() }

  @Test func `opens for the operations of the mode`() throws {
    let path = folder.path("file")
    #expect(throws: FileError(.open, path: path, errorNumber: ENOENT)) { try fileSystem.open(path, .read) }
    #expect(throws: FileError(.open, path: path, errorNumber: ENOENT)) { try fileSystem.open(path, .readWrite) }
    let file = try fileSystem.open(path, .createNew)
    #expect(try file.attributes().permissions == 0o600)
    #expect(throws: FileError(.open, path: path, errorNumber: EEXIST)) { try fileSystem.open(path, .createNew) }
    try write("abc", to: file, at: 2)
    #expect(try file.readAll() == [0, 0] + Array("abc".utf8))
    let reader = try fileSystem.open(path, .read)
    #expect(throws: FileError(.write, path: path, errorNumber: EBADF)) { try write("x", to: reader, at: 0) }
    try file.truncate(to: 3)
    #expect(try reader.readAll() == [0, 0] + Array("a".utf8))
    #expect(try reader.readAll(from: 1, upTo: 100) == [0] + Array("a".utf8))
    try file.synchronize()
  }

  /// The last way on file systems with neither an exclusive renaming nor hard links.
  @Test func `a file is renamed over an empty one unless something exists`() throws {
    let (path, newPath, folderPath) = (folder.path("file"), folder.path("new"), folder.path("folder"))
    try write("abc", to: try fileSystem.open(path, .createNew), at: 0)
    try fileSystem.createDirectory(at: folderPath)
    for existing in [path, folderPath] {
      #expect(throws: FileError(.open, path: existing, errorNumber: EEXIST)) {
        try fileSystem.renameOverNewFile(path, to: existing)
      }
    }
    #expect(throws: FileError(.rename, path: newPath, errorNumber: ENOENT)) {
      try fileSystem.renameOverNewFile(folder.path("missing"), to: newPath)
    }
    #expect(try fileSystem.attributes(at: newPath) == nil)
    try fileSystem.renameOverNewFile(path, to: newPath)
    #expect(try folder.names == ["folder", "new"])
    #expect(try fileSystem.open(newPath, .read).readAll() == Array("abc".utf8))
  }

  @Test func `closing ends everything and is idempotent`() throws {
    let path = folder.path("file")
    let file = try fileSystem.open(path, .createIfMissing)
    try file.close()
    try file.close()
    let closed = { (operation: FileError.Operation) in FileError(operation, path: path, errorNumber: EBADF) }
    #expect(throws: closed(.write)) { try write("x", to: file, at: 0) }
    #expect(throws: closed(.synchronize)) { try file.synchronize() }
    #expect(throws: closed(.attributes)) { try file.attributes() }
    #expect(throws: closed(.truncate)) { try file.truncate(to: 0) }
    #expect(throws: closed(.lock)) { try file.lock(.exclusive) }
    #expect(throws: closed(.setPermissions)) { try file.setPermissions(0o600) }
  }

  @Test func `closing while others read never touches another file`() async throws {
    // Descriptors are reused immediately. A read that outlived the close would read from the other file.
    try folder.write(String(repeating: "a", count: 100), to: "a")
    try folder.write(String(repeating: "b", count: 100), to: "b")
    for _ in 0..<200 {
      let file = try fileSystem.open(folder.path("a"), .read)
      let other = folder.path("b")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
          group.addTask {
            do {
              // The number is bounded, because endless reads could keep the closing task from running.
              for _ in 0..<50 {
                let bytes = try file.readAll(from: 0, upTo: 100)
                guard bytes.allSatisfy({ $0 == UInt8(ascii: "a") }) else {
                  throw FileError(.read, path: "of another file", errorNumber: 0)
                }
              }
            } catch let error as FileError where error.errorNumber == EBADF {}
          }
        }
        group.addTask {
          try file.close()
          _ = try POSIXFileSystem().open(other, .read).readAll()
        }
        try await group.waitForAll()
      }
    }
  }

  #if os(Linux)
  /// A child process has copies of its parent's descriptors between fork and exec.
  @Test(arguments: [true, false]) func `a lock ends even if a copy of its descriptor is open`(isReleased: Bool) throws {
    let path = folder.path("lock")
    var copies: [Int32] = []
    defer { for copy in copies { close(copy) } }
    do {
      let lock = try #require(try FileLock.acquire(path, in: fileSystem))
      let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
        // Other tests open and close files in the meantime.
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)) == path
      }
      copies = descriptors.compactMap { Int32($0) }.map { dup($0) }
      #expect(copies.count == 1 && copies[0] >= 0)
      #expect(try FileLock.acquire(path, in: fileSystem) == nil)
      if isReleased { try lock.release() }
    }
    #expect(try FileLock.acquire(path, in: fileSystem) != nil)
  }
  #endif

  @Test func `a lock excludes every other opening`() throws {
    let path = folder.path("lock")
    let lock = try #require(try FileLock.acquire(path, in: fileSystem))
    #expect(try FileLock.acquire(path, in: fileSystem) == nil)
    #expect(try lockFromAnotherProcess(path) == 1)
    try lock.release()
    #expect(try lockFromAnotherProcess(path) == 0)
    do {
      let second = try FileLock.acquire(path, in: fileSystem)
      #expect(second != nil)
      withExtendedLifetime(second) {}
    }
    #expect(try FileLock.acquire(path, in: fileSystem) != nil, "a lock ends with its last reference")
  }

  /// Returns the exit code of a process that tries to take the lock: 1 if it succeeds.
  private func lockFromAnotherProcess(_ path: String) throws -> Int32 {
    let script = """
      import fcntl, sys
      try: fcntl.flock(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError: sys.exit(1)
      """
    return try CommandRun(["python3", "-c", script, path]).status
  }

  /// The names are so many that the system returns them in several full batches.
  @Test func `all names of a large directory are listed`() throws {
    let names = (0..<3000).map { String(repeating: "n", count: $0 % 90) + "\($0)" }
    for name in names { try folder.write("", to: name) }
    #expect(try fileSystem.contentsOfDirectory(at: folder.path).sorted() == names.sorted())
  }

  @Test func `names appear and disappear`() throws {
    try folder.write("1", to: "one")
    try folder.write("2", to: "two")
    try fileSystem.rename(folder.path("one"), to: folder.path("two"))
    #expect(try fileSystem.contentsOfDirectory(at: folder.path) == ["two"])
    #expect(try folder.text("two") == "1")
    try fileSystem.removeFile(at: folder.path("two"))
    #expect(try fileSystem.contentsOfDirectory(at: folder.path) == [])
    #expect(try fileSystem.attributes(at: folder.path("two")) == nil)
    try fileSystem.synchronizeDirectory(at: folder.path)
    #expect(throws: FileError(.removeFile, path: folder.path("two"), errorNumber: ENOENT)) {
      try fileSystem.removeFile(at: folder.path("two"))
    }
    let missing = folder.path("missing")
    #expect(throws: FileError(.rename, path: missing, errorNumber: ENOENT)) {
      try fileSystem.rename(folder.path("two"), to: missing)
    }
    #expect(throws: FileError(.contentsOfDirectory, path: missing, errorNumber: ENOENT)) {
      try fileSystem.contentsOfDirectory(at: missing)
    }
    #expect(throws: FileError(.synchronizeDirectory, path: missing, errorNumber: ENOENT)) {
      try fileSystem.synchronizeDirectory(at: missing)
    }
  }

  @Test func `the identity matches the attributes`() throws {
    let path = folder.path("file")
    try fileSystem.open(path, .createNew).close()
    try FileManager.default.createSymbolicLink(atPath: folder.path("symbolic"), withDestinationPath: "file")
    for path in [path, folder.path("symbolic"), folder.path, "/dev/null", "/"] {
      let identity = try #require(try fileSystem.identity(at: path))
      #expect(try fileSystem.attributes(at: path)?.identity == identity)
    }
    let file = try fileSystem.open(path, .read)
    #expect(try fileSystem.identity(at: path) == file.attributes().identity)
    try file.close()
    #expect(try fileSystem.identity(at: folder.path("missing")) == nil)
    for path in ["\(path)/below", "a\0b"] {
      #expect(throws: FileError.self) { try fileSystem.identity(at: path) }
    }
  }

  @Test func `attributes describe a file`() throws {
    try folder.write("12345", to: "file")
    let path = folder.path("file")
    let attributes = try #require(try fileSystem.attributes(at: path))
    #expect(attributes.kind == .file && attributes.size == 5 && attributes.linkCount == 1)
    try FileManager.default.linkItem(atPath: path, toPath: folder.path("link"))
    let linked = try #require(try fileSystem.attributes(at: folder.path("link")))
    #expect(linked.linkCount == 2 && linked.identity == attributes.identity)
    #expect(try fileSystem.attributes(at: folder.path)?.kind == .directory)
    #expect(try fileSystem.attributes(at: "/dev/null")?.kind == .other)
    #expect(throws: FileError(.attributes, path: path + "/x", errorNumber: ENOTDIR)) {
      try fileSystem.attributes(at: path + "/x")
    }
  }

  @Test func `canonical paths follow dangling links`() throws {
    let manager = FileManager.default
    let real = try fileSystem.canonicalPath(of: folder.path)
    try folder.write("", to: "file")
    try manager.createSymbolicLink(atPath: folder.path("relative"), withDestinationPath: "file")
    try manager.createSymbolicLink(atPath: folder.path("chain"), withDestinationPath: folder.path("relative"))
    try manager.createSymbolicLink(atPath: folder.path("dangling"), withDestinationPath: "later")
    try manager.createSymbolicLink(atPath: folder.path("loop"), withDestinationPath: "loop")
    #expect(try fileSystem.canonicalPath(of: folder.path("chain")) == real + "/file")
    #expect(try fileSystem.canonicalPath(of: folder.path("../\(FilePaths.split(real).name)/file")) == real + "/file")
    #expect(try fileSystem.canonicalPath(of: folder.path("dangling")) == real + "/later")
    #expect(try fileSystem.canonicalPath(of: folder.path("missing")) == real + "/missing")
    #expect(throws: FileError.self) { try fileSystem.canonicalPath(of: folder.path("loop")) }
    #expect(throws: FileError(.canonicalPath, path: folder.path("no"), errorNumber: ENOENT)) {
      try fileSystem.canonicalPath(of: folder.path("no/file"))
    }
  }

  @Test func `creates private directories`() throws {
    let path = folder.path("a/b/c")
    try fileSystem.createDirectories(at: path)
    try fileSystem.createDirectories(at: path)
    for directory in ["a", "a/b", "a/b/c"] {
      #expect(try fileSystem.attributes(at: folder.path(directory))?.permissions == 0o700)
    }
    try folder.write("", to: "file")
    #expect(throws: FileError(.createDirectory, path: folder.path("file"), errorNumber: ENOTDIR)) {
      try fileSystem.createDirectories(at: folder.path("file"))
    }
  }

  @Test func `opening a pipe does not wait`() throws {
    let path = folder.path("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    let pipe = try fileSystem.open(path, .read)
    #expect(try pipe.attributes().kind == .other)
  }

  @Test(arguments: [
    ("/a/b", "/a", "b"), ("/a", "/", "a"), ("a", ".", "a"), ("a/b/", "a", "b"), ("/", "/", ""), ("./a", ".", "a"),
  ]) func `paths are split`(_ path: String, _ directory: String, _ name: String) {
    #expect(FilePaths.split(path) == (directory, name))
  }

  private func write(_ text: String, to file: any OpenStoreFile, at offset: Int64) throws {
    var text = text
    try text.withUTF8 { try file.writeAll(UnsafeRawBufferPointer($0), at: offset) }
  }
}
