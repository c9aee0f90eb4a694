#if LMDB
import CLMDB
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The lock file of an environment, with the table of readers, which LMDB maps and writes to.
enum LockFile {
  /// The size that LMDB gives it for as many readers as an environment allows, or somewhat more.
  private static let size = 1 << 16

  /// Opens the lock file once before LMDB does, and makes sure that the disk has room for the whole of it: if it had not,
  /// to touch the map would end the process.
  ///
  /// Nothing in this process may have the environment open: to close any descriptor of a file gives up the process's
  /// locks on it.
  ///
  /// - Parameters:
  ///   - path: The lock file. Its size and content stay, as others may be using it.
  ///   - dataFile: The data file, if a missing lock file is created: it gets the same owner and permissions.
  /// - Returns: Which file it is.
  /// - Throws: `LMDBError`.
  static func prepare(_ path: String, for dataFile: String?) throws(LMDBError) -> FileAttributes.Identity {
    let descriptor = try openFile(path, for: dataFile)
    defer { close(descriptor) }
    #if os(Linux)
    while fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, off_t(size)) != 0 {
      if errno == ENOSPC || errno == EDQUOT { throw LMDBError(code: errno) }
      // Other errors say that this file system cannot tell beforehand.
      if errno != EINTR { break }
    }
    #endif
    return try FileAttributes.Identity(ofDescriptor: descriptor)
  }

  private static func openFile(_ path: String, for dataFile: String?) throws(LMDBError) -> Int32 {
    while true {
      let existing = posixOpen(path, O_RDWR)
      if existing >= 0 { return existing }
      guard errno == ENOENT, let dataFile else { throw LMDBError(code: errno) }
      let created = posixOpen(path, O_RDWR | O_CREAT | O_EXCL)
      if created < 0 {
        guard errno == EEXIST else { throw LMDBError(code: errno) }
        continue
      }
      do throws(LMDBError) {
        try adoptOwner(of: dataFile, descriptor: created)
        return created
      } catch {
        close(created)
        throw error
      }
    }
  }

  private static func posixOpen(_ path: String, _ flags: Int32) -> Int32 {
    open(path, flags | O_CLOEXEC, 0o600)
  }

  /// Gives a new lock file the owner and the permissions of the data file: root that opens the store of another user
  /// leaves it with that user.
  private static func adoptOwner(of dataFile: String, descriptor: Int32) throws(LMDBError) {
    var status = stat()
    guard stat(dataFile, &status) == 0 else { throw LMDBError(code: errno) }
    // Only root may give files away.
    guard fchown(descriptor, status.st_uid, status.st_gid) == 0 || errno == EPERM else { throw LMDBError(code: errno) }
    guard fchmod(descriptor, 0o600 | status.st_mode & 0o666) == 0 else { throw LMDBError(code: errno) }
  }
}

extension FileAttributes.Identity {
  /// The file that a descriptor leads to.
  init(ofDescriptor descriptor: Int32) throws(LMDBError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw LMDBError(code: errno) }
    self.init(status)
  }

  /// The file that the operating system describes.
  init(_ status: stat) {
    self.init(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
  }
}
#endif
