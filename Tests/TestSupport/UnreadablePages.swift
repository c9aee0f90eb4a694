package import LarderFiles
package import LarderTesting

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A file system on which some pages of a file cannot be read.
package struct UnreadablePages: ForwardingFileSystem {
  package let base: SimulatedFileSystem
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

  package func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    let file = try base.open(path, mode)
    return path == self.path ? File(base: file, pages: pages) : file
  }

  private final class File: ForwardingFile {
    let base: any OpenStoreFile
    let pages: Range<Int>

    init(base: any OpenStoreFile, pages: Range<Int>) {
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
  }
}
