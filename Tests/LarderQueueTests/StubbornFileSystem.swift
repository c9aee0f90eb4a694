import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A file system in which a test makes some operations and the reading of some bytes fail.
final class StubbornFileSystem: StoreFileSystem {
  /// The operations that change a file or a folder.
  static let changes: Set<FileError.Operation> = [
    .rename, .removeFile, .createDirectory, .write, .truncate, .setPermissions, .setOwner, .setModificationTime,
  ]

  /// A file whose operations fail, too.
  private final class File: OpenStoreFile {
    let base: any OpenStoreFile
    let owner: StubbornFileSystem
    let path: String

    init(_ base: any OpenStoreFile, owner: StubbornFileSystem, path: String) {
      self.base = base
      self.owner = owner
      self.path = path
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
      guard let bad = owner.badBytes[path], bad.overlaps(offset..<offset + Int64(buffer.count)) else {
        return try base.read(into: buffer, at: offset)
      }
      guard offset < bad.lowerBound else { throw FileError(.read, path: path, errorNumber: EIO) }
      return try base.read(into: .init(rebasing: buffer[..<Int(bad.lowerBound - offset)]), at: offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
      try owner.check(.write)
      return try base.write(bytes, at: offset)
    }

    func truncate(to size: Int64) throws(FileError) {
      try owner.check(.truncate)
      try base.truncate(to: size)
    }

    func synchronize() throws(FileError) { try base.synchronize() }
    func attributes() throws(FileError) -> FileAttributes { try base.attributes() }

    func setPermissions(_ permissions: UInt32) throws(FileError) {
      try owner.check(.setPermissions)
      try base.setPermissions(permissions)
    }

    func setOwner(_ owner: FileAttributes.Owner) throws(FileError) {
      try self.owner.check(.setOwner)
      try base.setOwner(owner)
    }

    func setModificationTime(_ time: Int64) throws(FileError) {
      try owner.check(.setModificationTime)
      try base.setModificationTime(time)
    }

    func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool { try base.lock(kind) }
    func close() throws(FileError) { try base.close() }
  }

  let base: any StoreFileSystem
  private let refused: Set<FileError.Operation>
  private let errorNumber: Int32
  /// The part of the path by which failing operations are selected.
  private let pathPart: String
  private let refuses = Locked(true)
  private let creating = Locked<@Sendable (String) -> Void> { _ in }
  private let reading = Locked<@Sendable (String) -> Void> { _ in }
  private let bad = Locked<[String: Range<Int64>]>([:])

  init(
    _ base: any StoreFileSystem, refusing refused: Set<FileError.Operation> = [.removeFile], errorNumber: Int32 = 1,
    atPathsWith pathPart: String = ""
  ) {
    self.base = base
    self.refused = refused
    self.errorNumber = errorNumber
    self.pathPart = pathPart
  }

  /// Called with the path of each new file before its creation.
  ///
  /// It may wait.
  var beforeCreating: @Sendable (_ path: String) -> Void {
    get { creating.withLock { $0 } }
    set { creating.withLock { $0 = newValue } }
  }

  /// Called with the path of each file before it is opened for reading only.
  ///
  /// It may wait.
  var beforeReading: @Sendable (_ path: String) -> Void {
    get { reading.withLock { $0 } }
    set { reading.withLock { $0 = newValue } }
  }

  /// The unreadable bytes, keyed by the paths of their files.
  var badBytes: [String: Range<Int64>] {
    get { bad.withLock { $0 } }
    set { bad.withLock { $0 = newValue } }
  }

  var isStubborn: Bool {
    get { refuses.withLock { $0 } }
    set { refuses.withLock { $0 = newValue } }
  }

  private func check(_ operation: FileError.Operation, _ path: String = "") throws(FileError) {
    guard isStubborn, refused.contains(operation), pathPart.isEmpty || path.contains(pathPart) else { return }
    throw FileError(operation, path: path, errorNumber: errorNumber)
  }

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    if mode == .read {
      beforeReading(path)
      try check(.open, path)
    }
    if mode == .createNew {
      beforeCreating(path)
      try check(.write, path)
    }
    return File(try base.open(path, mode), owner: self, path: path)
  }

  func rename(_ path: String, to newPath: String) throws(FileError) {
    try check(.rename, path)
    try base.rename(path, to: newPath)
  }

  func removeFile(at path: String) throws(FileError) {
    try check(.removeFile, path)
    try base.removeFile(at: path)
  }

  func createDirectory(at path: String) throws(FileError) {
    try check(.createDirectory, path)
    try base.createDirectory(at: path)
  }

  func synchronizeDirectory(at path: String) throws(FileError) { try base.synchronizeDirectory(at: path) }
  func contentsOfDirectory(at path: String) throws(FileError) -> [String] { try base.contentsOfDirectory(at: path) }
  func attributes(at path: String) throws(FileError) -> FileAttributes? { try base.attributes(at: path) }
  func isMountPoint(at path: String) throws(FileError) -> Bool { try base.isMountPoint(at: path) }
  func canonicalPath(of path: String) throws(FileError) -> String { try base.canonicalPath(of: path) }
}
