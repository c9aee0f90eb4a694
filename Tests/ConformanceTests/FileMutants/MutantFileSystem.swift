#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderFiles

/// A file system that adds one fault to another file system.
struct MutantFileSystem: StoreFileSystem {
  let base: any StoreFileSystem
  let fault: FileFault

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
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

extension OpenStoreFile {
  /// Writes all of some bytes.
  func writeAll(_ bytes: [UInt8], at offset: Int64 = 0) throws(FileError) {
    var failure: FileError?
    bytes.withUnsafeBytes { bytes in
      do throws(FileError) { try writeAll(bytes, at: offset) } catch { failure = error }
    }
    if let failure { throw failure }
  }
}

/// Runs a closure and ignores the error EIO.
func passingOver(_ body: () throws(FileError) -> Void) throws(FileError) {
  do throws(FileError) {
    try body()
  } catch {
    guard error.errorNumber == EIO else { throw error }
  }
}

/// A file that a ``MutantFileSystem`` has opened.
final class MutantFile: OpenStoreFile {
  private let base: any OpenStoreFile
  private let fault: FileFault

  private struct State {
    /// The writes that ``FileFault/writesLate`` has not made yet.
    var waiting: [(bytes: [UInt8], offset: Int64)] = []
    /// A Boolean value that indicates whether ``FileFault/stopsAtShortRead`` has reported the end of the file.
    var hasEnded = false
  }

  private let state = Locked(State())

  init(base: any OpenStoreFile, fault: FileFault) {
    self.base = base
    self.fault = fault
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    switch fault {
    case .readErrorIsEnd:
      do throws(FileError) { return try base.read(into: buffer, at: offset) } catch { return 0 }
    case .stopsAtShortRead:
      if state.withLock({ $0.hasEnded }) { return 0 }
      let count = try base.read(into: buffer, at: offset)
      state.withLock { $0.hasEnded = count < buffer.count }
      return count
    default:
      return try base.read(into: buffer, at: offset)
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    switch fault {
    case .writesNothing:
      return bytes.count
    case .writesLate:
      let copy = Array(bytes)
      state.withLock { $0.waiting.append((copy, offset)) }
      return bytes.count
    case .stopsAtShortWrite:
      _ = try base.write(bytes, at: offset)
      return bytes.count
    case .failsAtShortWrite:
      let count = try base.write(bytes, at: offset)
      guard count == bytes.count else { throw FileError(.write, path: "", errorNumber: EIO) }
      return count
    case .swallowsWriteErrors:
      try passingOver { () throws(FileError) in _ = try base.write(bytes, at: offset) }
      return bytes.count
    default:
      return try base.write(bytes, at: offset)
    }
  }

  func truncate(to size: Int64) throws(FileError) {
    if fault == .ignoresTruncate, try base.attributes().size > size { return }
    try base.truncate(to: size)
  }

  func synchronize() throws(FileError) {
    switch fault {
    case .skipsSynchronize: break
    case .swallowsSynchronizeErrors:
      try passingOver { () throws(FileError) in try base.synchronize() }
    case .repeatsFailedSynchronize:
      do throws(FileError) { try base.synchronize() } catch { try base.synchronize() }
    case .truncatesInsteadOfSynchronizing:
      try base.truncate(to: max(0, base.attributes().size - 1))
    case .writesLate:
      for (bytes, offset) in state.withLock({ $0.waiting }) {
        try base.writeAll(bytes, at: offset)
      }
      state.withLock { $0.waiting = [] }
      try base.synchronize()
    default: try base.synchronize()
    }
  }

  func attributes() throws(FileError) -> FileAttributes {
    try base.attributes()
  }

  func setPermissions(_ permissions: UInt32) throws(FileError) {
    try base.setPermissions(permissions)
  }

  func setOwner(_ owner: FileAttributes.Owner) throws(FileError) {
    try base.setOwner(owner)
  }

  func setModificationTime(_ time: Int64) throws(FileError) {
    try base.setModificationTime(time)
  }

  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool {
    if fault == .locksNothing { return true }
    return try base.lock(kind)
  }

  func close() throws(FileError) {
    try base.close()
  }
}

/// A fault of a ``MutantFileSystem``.
enum FileFault: String, CaseIterable, Sendable {
  /// Synchronizing a file has no effect.
  case skipsSynchronize
  /// Synchronizing a directory has no effect.
  case skipsDirectorySynchronize
  /// A failed synchronization of a file is ignored.
  case swallowsSynchronizeErrors
  /// A failed synchronization of a file is repeated, and the second result is trusted.
  case repeatsFailedSynchronize
  /// A failed synchronization of a directory is ignored.
  case swallowsDirectoryErrors
  /// Synchronizing a file removes its last byte.
  case truncatesInsteadOfSynchronizing
  /// A rename copies the file over its destination byte by byte.
  case renameNotAtomic
  /// A rename first removes the file that it replaces.
  case removesBeforeRename
  /// A failed rename is ignored.
  case swallowsRenameErrors
  /// A write has no effect and reports success.
  case writesNothing
  /// A write stays in memory until the file is synchronized.
  case writesLate
  /// A short write reports the whole length.
  case stopsAtShortWrite
  /// A short write reports a failure.
  case failsAtShortWrite
  /// A failed write reports success.
  case swallowsWriteErrors
  /// Truncation has no effect.
  case ignoresTruncate
  /// A failed read reports the end of the file.
  case readErrorIsEnd
  /// A file appears to end at the first failed read after a successful one.
  case stopsAtShortRead
  /// A file whose attributes cannot be read appears to be missing.
  case errorIsMissing
  /// Opening a file for writing empties it.
  case emptiesOnOpening
  /// Every lock is granted.
  case locksNothing
}
#endif
