import Foundation
import Larder
import LarderFiles
import TestSupport
import Testing

@Suite struct StoreCopyTests {
  private let folder: TemporaryFolder
  private let files: StoreFileSet

  init() throws {
    folder = try TemporaryFolder()
    files = StoreFileSet(
      at: folder.path("copy"), companions: [.init(suffix: "-lock", role: .content, summary: "a lock file")])
  }

  private func write(companion text: String) throws {
    let copy = try StoreCopy(files, store: "store", in: QuickOpener(suffix: "-lock"))
    try copy.write { path in
      for (path, text) in [(path, "store"), (path + "-lock", text)] {
        let file = try POSIXFileSystem().open(path, .createIfMissing)
        try file.writeAll(Array(text.utf8), at: 0)
        try file.close()
      }
    }
  }

  /// Another program opens the copy as soon as it has its name, and creates a lock file before the one of the copy is there.
  @Test func `an empty companion gives way to that of a program`() throws {
    try write(companion: "")
    #expect(try folder.names.sorted() == ["copy", "copy-lock"])
    #expect(try folder.text("copy-lock") == "opened")
  }

  @Test func `a companion that cannot be placed leaves the outcome unknown`() throws {
    let error = expectStoreError(.ioFailed) { try write(companion: "changes") }
    #expect(error?.outcome == .unknown)
    #expect(error?.message.contains("is in place") == true)
    #expect(try folder.names.sorted() == ["copy", "copy-lock"])
    #expect(try folder.text("copy") == "store")
  }

  /// The size of a sparse file is as easy to get wrong as its kind.
  @Test(arguments: [true, false]) func `foreign dictionaries are refused before anything is written`(isFolder: Bool)
    throws
  {
    let source = StoreFileSet(at: folder.path("store"))
    if isFolder {
      try POSIXFileSystem().createDirectory(at: source.dictionariesPath)
    } else {
      let file = try POSIXFileSystem().open(source.dictionariesPath, .createNew)
      try file.truncate(to: 1 << 40)
      try file.close()
    }
    let error = expectStoreError(.unsupported) { try StoreCopy(files, of: source, store: "store") }
    #expect(error?.message.contains(source.dictionariesPath) == true)
    #expect(try folder.names == ["store.dictionaries"])
  }

  /// Some file systems on a network or in user space cannot lock files.
  @Test(arguments: [ENOLCK, ENOSYS, EOPNOTSUPP]) func `a file system without locks holds copies`(errorNumber: Int32)
    throws
  {
    let fileSystem = LocklessFileSystem(errorNumber: errorNumber)
    let killed = try StoreCopy(StoreFileSet(at: folder.path("killed")), store: "store", in: fileSystem)
    // A process that can lock files takes nothing from one that cannot.
    for other in [fileSystem, POSIXFileSystem()] as [any StoreFileSystem] {
      let name = "copy \(type(of: other))"
      let copy = try StoreCopy(StoreFileSet(at: folder.path(name)), store: "store", in: other)
      try copy.write { path in
        let file = try POSIXFileSystem().open(path, .createIfMissing)
        try file.writeAll(Array("store".utf8), at: 0)
        try file.close()
      }
      #expect(try folder.text(name) == "store")
    }
    try killed.write { _ in }
    #expect(try folder.names.sorted() == ["copy LocklessFileSystem", "copy POSIXFileSystem", "killed"])
  }

  @Test func `another error of the lock is reported`() throws {
    let error = expectStoreError(.ioFailed) {
      try StoreCopy(files, store: "store", in: LocklessFileSystem(errorNumber: EIO))
    }
    #expect((error?.underlying as? FileError)?.errorNumber == EIO)
    #expect(try folder.names.isEmpty)
  }
}

/// A file system on which locking fails.
private struct LocklessFileSystem: ForwardingFileSystem {
  let base = POSIXFileSystem()
  let errorNumber: Int32

  private final class File: ForwardingFile {
    let base: any OpenStoreFile
    let errorNumber: Int32

    init(_ base: any OpenStoreFile, errorNumber: Int32) {
      self.base = base
      self.errorNumber = errorNumber
    }

    func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool {
      throw FileError(.lock, path: "", errorNumber: errorNumber)
    }
  }

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    File(try base.open(path, mode), errorNumber: errorNumber)
  }
}

/// A file system on which a file with a suffix appears beside each renamed one.
private struct QuickOpener: ForwardingFileSystem {
  let base = POSIXFileSystem()
  let suffix: String

  func renameExclusively(_ path: String, to newPath: String, isFolder: Bool) throws(FileError) {
    try base.renameExclusively(path, to: newPath, isFolder: isFolder)
    guard !newPath.hasSuffix(suffix) else { return }
    let file = try base.open(newPath + suffix, .createNew)
    try file.writeAll(Array("opened".utf8), at: 0)
    try file.close()
  }
}
