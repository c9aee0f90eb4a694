import Foundation
import Synchronization

/// A file opened by ``POSIXFileSystem``.
final class POSIXFile: OpenStoreFile {
  private let descriptor: Int32
  private let path: String

  // The number of users of the descriptor: the running calls, plus the owner until `close`. The user that decrements it
  // to zero closes the descriptor. A call therefore never uses a number that the system has reassigned to another file.
  private let users = Atomic<Int>(1)
  private let isOwned = Atomic<Bool>(true)
  private let holdsLock = Atomic<Bool>(false)

  init(descriptor: Int32, path: String) {
    self.descriptor = descriptor
    self.path = path
  }

  deinit {
    // No call is running. Errors are irrelevant here: durable data has been synchronized already, and closing releases
    // the lock.
    guard isOwned.load(ordering: .acquiring) else { return }
    if holdsLock.load(ordering: .acquiring) { _ = flock(descriptor, LOCK_UN) }
    _ = posixClose(descriptor)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try use(for: .read) { pread($0, buffer.baseAddress, buffer.count, off_t(offset)) }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try use(for: .write) { pwrite($0, bytes.baseAddress, bytes.count, off_t(offset)) }
  }

  func truncate(to size: Int64) throws(FileError) {
    _ = try use(for: .truncate) { Int(ftruncate($0, off_t(size))) }
  }

  func synchronize() throws(FileError) {
    _ = try use(for: .synchronize) { Int(POSIXFile.synchronize($0)) }
  }

  func attributes() throws(FileError) -> FileAttributes {
    var status = stat()
    _ = try use(for: .attributes) { Int(fstat($0, &status)) }
    return FileAttributes(status)
  }

  func setPermissions(_ permissions: UInt32) throws(FileError) {
    _ = try use(for: .setPermissions) { Int(fchmod($0, mode_t(permissions))) }
  }

  func size() throws(FileError) -> Int64 {
    var size: Int64 = 0
    _ = try use(for: .attributes) { Int(posixSize($0, &size)) }
    return size
  }

  func setOwner(_ owner: FileAttributes.Owner) throws(FileError) {
    _ = try use(for: .setOwner) { Int(fchown($0, owner.user, owner.group)) }
  }

  func setModificationTime(_ time: Int64) throws(FileError) {
    let (seconds, nanoseconds) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
    let times = [
      timespec(tv_sec: 0, tv_nsec: POSIXFile.omitted), timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds)),
    ]
    _ = try use(for: .setModificationTime) { Int(futimens($0, times)) }
  }

  /// The value of `UTIME_OMIT` for `futimens`, which keeps the access time. Swift does not import the macro.
  #if canImport(Darwin)
  private static let omitted = -2
  #else
  private static let omitted = (1 << 30) - 2
  #endif

  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool {
    do {
      _ = try use(for: .lock) { Int(flock($0, (kind == .exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) }
      holdsLock.store(true, ordering: .releasing)
      return true
    } catch {
      guard error.errorNumber == EWOULDBLOCK else { throw error }
      return false
    }
  }

  func close() throws(FileError) {
    guard isOwned.exchange(false, ordering: .acquiringAndReleasing) else { return }
    let unlocking = Result { () throws(FileError) in try unlock() }
    try giveUp()
    try unlocking.get()
  }

  /// Releases the lock, if any.
  ///
  /// Closing alone releases the lock only with the last copy of the descriptor. A child process has a copy between its
  /// fork and its exec, so an opener of the file would be refused at that moment.
  private func unlock() throws(FileError) {
    guard holdsLock.exchange(false, ordering: .acquiringAndReleasing) else { return }
    _ = try use(for: .lock) { Int(flock($0, LOCK_UN)) }
  }

  /// Flushes the data written to a descriptor to disk.
  ///
  /// On Linux, `fdatasync` suffices: it omits only timestamps that are not needed to find the data. On Apple platforms,
  /// `fsync` stops at the cache of the disk, so `F_FULLFSYNC` is used.
  static func synchronize(_ descriptor: Int32) -> Int32 {
    #if canImport(Darwin)
    fcntl(descriptor, F_FULLFSYNC)
    #else
    fdatasync(descriptor)
    #endif
  }

  /// Runs a system call with the descriptor.
  ///
  /// A negative result is an error.
  private func use(for operation: FileError.Operation, _ call: (Int32) -> Int) throws(FileError) -> Int {
    var count = users.load(ordering: .relaxed)
    while true {
      guard count > 0 else { throw FileError(operation, path: path, errorNumber: EBADF) }
      let (exchanged, original) = users.weakCompareExchange(
        expected: count, desired: count + 1, ordering: .acquiringAndReleasing)
      if exchanged { break }
      count = original
    }
    let result = call(descriptor)
    let errorNumber = errno
    try giveUp()
    guard result >= 0 else { throw FileError(operation, path: path, errorNumber: errorNumber) }
    return result
  }

  private func giveUp() throws(FileError) {
    guard users.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    // After EINTR, the descriptor is closed nevertheless, on Linux and on Apple platforms.
    guard posixClose(descriptor) == 0 || errno == EINTR else {
      throw FileError(.close, path: path, errorNumber: errno)
    }
  }
}

extension FileAttributes {
  /// Creates attributes from the result of `stat`.
  init(_ status: stat) {
    let kind: Kind =
      switch mode_t(status.st_mode) & mode_t(S_IFMT) {
      case mode_t(S_IFREG): .file
      case mode_t(S_IFDIR): .directory
      default: .other
      }
    #if canImport(Darwin)
    let time = status.st_mtimespec
    #else
    let time = status.st_mtim
    #endif
    // A time that overflows still differs from other times.
    let modificationTime = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    self.init(
      kind: kind, size: Int64(status.st_size), modificationTime: modificationTime,
      permissions: UInt32(status.st_mode) & 0o7777,
      owner: Owner(user: UInt32(status.st_uid), group: UInt32(status.st_gid)),
      linkCount: Int(status.st_nlink),
      identity: Identity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino)))
  }
}
