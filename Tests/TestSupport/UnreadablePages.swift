package import LarderFiles
package import LarderTesting

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A file system on which some pages of a file cannot be read.
package struct UnreadablePages: FileSystem {
  private let base: SimulatedFileSystem
  private let path: String
  private let pages: Range<Int>

  /// Creates a file system that adds unreadable pages to another one.
  ///
  /// - Parameters:
  ///   - base: The other file system.
  ///   - path: The path of the file.
  ///   - pages: The numbers of the unreadable pages, of 4,096 bytes each.
  package init(base: SimulatedFileSystem, path: String, pages: Range<Int>) {
    self.base = base
    self.path = path
    self.pages = pages
  }

  package func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile {
    let file = try base.open(path, mode)
    return path == self.path ? File(base: file, pages: pages) : file
  }
  package func rename(_ path: String, to newPath: String) throws(FileError) { try base.rename(path, to: newPath) }
  package func removeFile(at path: String) throws(FileError) { try base.removeFile(at: path) }
  package func createDirectory(at path: String) throws(FileError) { try base.createDirectory(at: path) }
  package func synchronizeDirectory(at path: String) throws(FileError) { try base.synchronizeDirectory(at: path) }
  package func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try base.contentsOfDirectory(at: path)
  }
  package func attributes(at path: String) throws(FileError) -> FileAttributes? { try base.attributes(at: path) }
  package func isMountPoint(at path: String) -> Bool { false }
  package func canonicalPath(of path: String) throws(FileError) -> String { try base.canonicalPath(of: path) }

  private final class File: OpenFile {
    let base: any OpenFile
    let pages: Range<Int>

    init(base: any OpenFile, pages: Range<Int>) {
      self.base = base
      self.pages = pages
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
      let bytes = Int64(pages.lowerBound * 4_096)..<Int64(pages.upperBound * 4_096)
      guard !bytes.overlaps(offset..<offset + Int64(buffer.count)) else {
        throw FileError(.read, path: "", errorNumber: EIO)
      }
      return try base.read(into: buffer, at: offset)
    }
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
      try base.write(bytes, at: offset)
    }
    func truncate(to size: Int64) throws(FileError) { try base.truncate(to: size) }
    func synchronize() throws(FileError) { try base.synchronize() }
    func attributes() throws(FileError) -> FileAttributes { try base.attributes() }
    func setPermissions(_ permissions: UInt32) throws(FileError) { try base.setPermissions(permissions) }
    func setOwner(_ owner: FileAttributes.Owner) throws(FileError) { try base.setOwner(owner) }
    func setModificationTime(_ time: Int64) throws(FileError) { try base.setModificationTime(time) }
    func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool { try base.lock(kind) }
    func close() throws(FileError) { try base.close() }
  }
}
