#if Compression
import LarderFiles

/// A file of a ``HeldFileSystem``.
final class HeldFile: OpenFile {
  private let base: any OpenFile
  private let hold: Hold

  init(base: any OpenFile, hold: Hold) {
    self.base = base
    self.hold = hold
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    hold.pass(.writing)
    return try base.write(bytes, at: offset)
  }

  func synchronize() throws(FileError) {
    hold.pass(.synchronizing)
    try base.synchronize()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try base.read(into: buffer, at: offset)
  }

  func truncate(to size: Int64) throws(FileError) {
    try base.truncate(to: size)
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
    try base.lock(kind)
  }

  func close() throws(FileError) {
    try base.close()
  }
}
#endif
