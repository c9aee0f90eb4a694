#if Compression
import LarderFiles

/// A file system whose new files are held at a point, until they are let go on: so a compaction can be looked at in its
/// midst.
struct HeldFileSystem: FileSystem {
  let base: any FileSystem
  let hold: Hold

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile {
    let file = try base.open(path, mode)
    return mode == .createNew ? HeldFile(base: file, hold: hold) : file
  }

  func rename(_ path: String, to newPath: String) throws(FileError) {
    try base.rename(path, to: newPath)
  }

  func removeFile(at path: String) throws(FileError) {
    try base.removeFile(at: path)
  }

  func createDirectory(at path: String) throws(FileError) {
    try base.createDirectory(at: path)
  }

  func synchronizeDirectory(at path: String) throws(FileError) {
    try base.synchronizeDirectory(at: path)
  }

  func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try base.contentsOfDirectory(at: path)
  }

  func attributes(at path: String) throws(FileError) -> FileAttributes? {
    try base.attributes(at: path)
  }

  func isMountPoint(at path: String) throws(FileError) -> Bool { try base.isMountPoint(at: path) }

  func canonicalPath(of path: String) throws(FileError) -> String {
    try base.canonicalPath(of: path)
  }
}
#endif
