import Foundation
import LarderFiles
import Synchronization

/// A file that a ``MutantFileSystem`` has opened.
final class MutantFile: OpenFile {
  private let base: any OpenFile
  private let fault: FileFault

  private struct State {
    /// What ``FileFault/writesLate`` has not written yet.
    var waiting: [(bytes: [UInt8], offset: Int64)] = []
    /// Whether ``FileFault/stopsAtShortRead`` has found its end.
    var hasEnded = false
  }

  private let state = Mutex(State())

  init(base: any OpenFile, fault: FileFault) {
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
