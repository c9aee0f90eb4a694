import LarderFiles
import Synchronization

/// A file system that refuses to remove files as long as it is told to.
final class StubbornFileSystem: FileSystem {
  let base: any FileSystem
  private let refuses = Mutex(true)

  init(_ base: any FileSystem) {
    self.base = base
  }

  var isStubborn: Bool {
    get { refuses.withLock { $0 } }
    set { refuses.withLock { $0 = newValue } }
  }

  func removeFile(at path: String) throws(FileError) {
    if isStubborn { throw FileError(.removeFile, path: path, errorNumber: 1) }
    try base.removeFile(at: path)
  }

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile { try base.open(path, mode) }
  func rename(_ path: String, to newPath: String) throws(FileError) { try base.rename(path, to: newPath) }
  func createDirectory(at path: String) throws(FileError) { try base.createDirectory(at: path) }
  func synchronizeDirectory(at path: String) throws(FileError) { try base.synchronizeDirectory(at: path) }
  func contentsOfDirectory(at path: String) throws(FileError) -> [String] { try base.contentsOfDirectory(at: path) }
  func attributes(at path: String) throws(FileError) -> FileAttributes? { try base.attributes(at: path) }
  func isMountPoint(at path: String) throws(FileError) -> Bool { try base.isMountPoint(at: path) }

  func canonicalPath(of path: String) throws(FileError) -> String { try base.canonicalPath(of: path) }
}
