import LarderFiles

/// A file that a ``SimulatedFileSystem`` has opened.
final class SimulatedFile: OpenFile {
  private let fileSystem: SimulatedFileSystem
  private let number: Int
  private let path: String

  init(fileSystem: SimulatedFileSystem, number: Int, path: String) {
    self.fileSystem = fileSystem
    self.number = number
    self.path = path
  }

  deinit {
    fileSystem.withDisk { $0.close(number) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try fileSystem.onDisk { disk throws(FileError) in try disk.read(number, path, into: buffer, at: Int(offset)) }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try fileSystem.onDisk { disk throws(FileError) in try disk.write(number, path, bytes, at: Int(offset)) }
  }

  func truncate(to size: Int64) throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.truncate(number, path, to: Int(size)) }
  }

  func synchronize() throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.synchronize(number, path) }
  }

  func attributes() throws(FileError) -> FileAttributes {
    try fileSystem.onDisk { disk throws(FileError) in try disk.attributes(number, path) }
  }

  func setPermissions(_ permissions: UInt32) throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.setPermissions(number, path, permissions) }
  }

  func setOwner(_ owner: FileAttributes.Owner) throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.setOwner(number, path, owner) }
  }

  func setModificationTime(_ time: Int64) throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.setModificationTime(number, path, time) }
  }

  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool {
    try fileSystem.onDisk { disk throws(FileError) in try disk.lock(number, path, kind) }
  }

  func close() {
    fileSystem.withDisk { $0.close(number) }
  }
}
