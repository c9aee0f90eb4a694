package import LarderFiles

/// A file system that does what another one does, except for the methods that it declares itself.
package protocol ForwardingFileSystem: StoreFileSystem {
  associatedtype Base: StoreFileSystem

  /// The other file system.
  var base: Base { get }
}

extension ForwardingFileSystem {
  package func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    try base.open(path, mode)
  }
  package func rename(_ path: String, to newPath: String) throws(FileError) { try base.rename(path, to: newPath) }
  package func removeFile(at path: String) throws(FileError) { try base.removeFile(at: path) }
  package func createDirectory(at path: String) throws(FileError) { try base.createDirectory(at: path) }
  package func synchronizeDirectory(at path: String) throws(FileError) { try base.synchronizeDirectory(at: path) }
  package func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try base.contentsOfDirectory(at: path)
  }
  package func attributes(at path: String) throws(FileError) -> FileAttributes? { try base.attributes(at: path) }
  package func isMountPoint(at path: String) throws(FileError) -> Bool { try base.isMountPoint(at: path) }
  package func canonicalPath(of path: String) throws(FileError) -> String { try base.canonicalPath(of: path) }
}

/// A file that does what another one does, except for the methods that it declares itself.
package protocol ForwardingFile: OpenStoreFile {
  /// The other file.
  var base: any OpenStoreFile { get }
}

extension ForwardingFile {
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try base.read(into: buffer, at: offset)
  }
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try base.write(bytes, at: offset)
  }
  package func truncate(to size: Int64) throws(FileError) { try base.truncate(to: size) }
  package func synchronize() throws(FileError) { try base.synchronize() }
  package func attributes() throws(FileError) -> FileAttributes { try base.attributes() }
  package func setPermissions(_ permissions: UInt32) throws(FileError) { try base.setPermissions(permissions) }
  package func setOwner(_ owner: FileAttributes.Owner) throws(FileError) { try base.setOwner(owner) }
  package func setModificationTime(_ time: Int64) throws(FileError) { try base.setModificationTime(time) }
  package func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool { try base.lock(kind) }
  package func close() throws(FileError) { try base.close() }
}
