#if LMDB
import CLMDB
import Foundation
import LarderFiles

// Nothing in this process may have the environment open when these functions are called, because closing any descriptor
// of a file releases the process's locks on that file.

/// Turns a missing or empty data file into the data file of an empty environment.
///
/// The lock file is created only afterward. An empty data file beside a lock file was therefore emptied later. An
/// empty data file without a lock file is being created, or its process died while creating it.
enum DataFileCreation {
  /// Creates the data file unless another process is faster.
  ///
  /// Blocks while another process creates it.
  ///
  /// - Parameter path: The path of the data file. A new file has permissions 0600.
  /// - Throws: `LMDBError`.
  static func create(_ path: String) throws(LMDBError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw LMDBError(code: errno) }
    defer { close(descriptor) }
    // One process at a time.
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw LMDBError(code: errno) }
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw LMDBError(code: errno) }
    guard status.st_size == 0 else { return }
    do throws(LMDBError) {
      try writeMetaPages(path)
      guard fsync(descriptor) == 0 else { throw LMDBError(code: errno) }
    } catch {
      // A partially written header would count as damage. The original error matters more than a failure to undo it.
      ftruncate(descriptor, 0)
      throw error
    }
  }

  /// Writes the meta pages through LMDB, without a lock file.
  private static func writeMetaPages(_ path: String) throws(LMDBError) {
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    guard let pointer = created else { throw LMDBError(code: MDB_PANIC) }
    defer { mdb_env_close(pointer) }
    try LMDBError.check(mdb_env_open(pointer, path, UInt32(MDB_NOSUBDIR | MDB_NOLOCK), 0o600))
  }
}

/// The lock file of an environment.
///
/// It holds the reader table, which LMDB maps and writes.
enum LockFile {
  /// The size that LMDB gives the file for the maximum number of readers, or slightly more.
  private static let size = 1 << 16

  /// Opens the lock file before LMDB does, and reserves disk space for the whole file.
  ///
  /// Without the reserved space, accessing the map could end the process.
  ///
  /// - Parameters:
  ///   - path: The path of the lock file. Its size and content are kept, because other processes may be using it.
  ///   - dataFile: The path of the data file, or `nil` to not create a missing lock file. A new lock file gets the same
  ///     owner and permissions as the data file.
  /// - Returns: The identity of the lock file.
  /// - Throws: `LMDBError`.
  static func prepare(_ path: String, for dataFile: String?) throws(LMDBError) -> FileAttributes.Identity {
    let descriptor = try openFile(path, for: dataFile)
    defer { close(descriptor) }
    #if os(Linux)
    while fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, off_t(size)) != 0 {
      if errno == ENOSPC || errno == EDQUOT { throw LMDBError(code: errno) }
      // Other errors mean that this file system cannot reserve space.
      if errno != EINTR { break }
    }
    #endif
    return try FileAttributes.Identity(ofDescriptor: descriptor)
  }

  /// Returns whether another process has the environment open.
  ///
  /// Each process holds a shared lock of the first byte (`mdb_env_share_locks` in `mdb.c`).
  ///
  /// - Parameter path: The path of the lock file. It need not exist.
  /// - Throws: `LMDBError`.
  static func isInUse(_ path: String) throws(LMDBError) -> Bool {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw LMDBError(code: errno) }
      return false
    }
    defer { close(descriptor) }
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_len = 1
    guard fcntl(descriptor, F_GETLK, &lock) == 0 else { throw LMDBError(code: errno) }
    return lock.l_type != Int16(F_UNLCK)
  }

  private static func openFile(_ path: String, for dataFile: String?) throws(LMDBError) -> Int32 {
    while true {
      let existing = open(path, O_RDWR | O_CLOEXEC)
      if existing >= 0 { return existing }
      guard errno == ENOENT, let dataFile else { throw LMDBError(code: errno) }
      let created = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0o600)
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

  /// Gives a new lock file the owner and the permissions of the data file.
  ///
  /// If root opens a user's store, the file still belongs to that user.
  private static func adoptOwner(of dataFile: String, descriptor: Int32) throws(LMDBError) {
    var status = stat()
    guard stat(dataFile, &status) == 0 else { throw LMDBError(code: errno) }
    // Only root may change the owner of a file.
    guard fchown(descriptor, status.st_uid, status.st_gid) == 0 || errno == EPERM else { throw LMDBError(code: errno) }
    guard fchmod(descriptor, 0o600 | status.st_mode & 0o666) == 0 else { throw LMDBError(code: errno) }
  }
}

extension FileAttributes.Identity {
  /// Creates the identity of the file that a descriptor refers to.
  init(ofDescriptor descriptor: Int32) throws(LMDBError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw LMDBError(code: errno) }
    self.init(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
  }
}
#endif
