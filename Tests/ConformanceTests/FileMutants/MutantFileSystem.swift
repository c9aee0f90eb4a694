import Foundation
import LarderFiles

/// A file system with one fault over one without.
struct MutantFileSystem: FileSystem {
  let base: any FileSystem
  let fault: FileFault

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile {
    let file = try base.open(path, mode)
    if fault == .emptiesOnOpening, mode != .read { try file.truncate(to: 0) }
    return MutantFile(base: file, fault: fault)
  }

  func rename(_ path: String, to newPath: String) throws(FileError) {
    switch fault {
    case .renameNotAtomic:
      let bytes = try base.open(path, .read).readAll()
      let file = try base.open(newPath, .createIfMissing)
      try file.truncate(to: 0)
      try file.writeAll(bytes)
      try file.synchronizeThroughInterruptions()
      try base.removeFile(at: path)
    case .removesBeforeRename:
      if try base.attributes(at: newPath) != nil { try base.removeFile(at: newPath) }
      try base.rename(path, to: newPath)
    case .swallowsRenameErrors:
      try passingOver { () throws(FileError) in try base.rename(path, to: newPath) }
    default:
      try base.rename(path, to: newPath)
    }
  }

  func removeFile(at path: String) throws(FileError) {
    try base.removeFile(at: path)
  }

  func createDirectory(at path: String) throws(FileError) {
    try base.createDirectory(at: path)
  }

  func synchronizeDirectory(at path: String) throws(FileError) {
    switch fault {
    case .skipsDirectorySynchronize: break
    case .swallowsDirectoryErrors:
      try passingOver { () throws(FileError) in try base.synchronizeDirectory(at: path) }
    default: try base.synchronizeDirectory(at: path)
    }
  }

  func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try base.contentsOfDirectory(at: path)
  }

  func attributes(at path: String) throws(FileError) -> FileAttributes? {
    guard fault == .errorIsMissing else { return try base.attributes(at: path) }
    do throws(FileError) { return try base.attributes(at: path) } catch { return nil }
  }

  func isMountPoint(at path: String) throws(FileError) -> Bool { try base.isMountPoint(at: path) }

  func canonicalPath(of path: String) throws(FileError) -> String {
    try base.canonicalPath(of: path)
  }
}

extension OpenFile {
  /// Writes all of some bytes.
  func writeAll(_ bytes: [UInt8], at offset: Int64 = 0) throws(FileError) {
    var failure: FileError?
    bytes.withUnsafeBytes { bytes in
      do throws(FileError) { try writeAll(bytes, at: offset) } catch { failure = error }
    }
    if let failure { throw failure }
  }
}

/// Does something, and is content where it fails with EIO.
func passingOver(_ body: () throws(FileError) -> Void) throws(FileError) {
  do throws(FileError) {
    try body()
  } catch {
    guard error.errorNumber == EIO else { throw error }
  }
}
