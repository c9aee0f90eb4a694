#if LMDB
import CLMDB
import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Makes a data file that is missing or empty one of an environment without entries.
///
/// The lock file is made only afterwards. So an empty data file beside a lock file was emptied by someone, and one
/// without is being created, or was when its process died.
enum DataFileCreation {
  /// Creates the data file, unless another process is faster; blocks while one does.
  ///
  /// Nothing in this process may have the environment open: to close any descriptor of a file gives up the process's
  /// locks on it.
  ///
  /// - Parameters:
  ///   - path: The data file. A new one has permissions 0600.
  ///   - store: The name of the environment, for errors.
  /// - Throws: ``StoreError``.
  static func create(_ path: String, store: String) throws {
    do {
      try create(path)
    } catch {
      throw EnvironmentFiles.error(error.code, "the data file cannot be created", store: store)
    }
  }

  private static func create(_ path: String) throws(LMDBError) {
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
      // A part of them would be damage. Why it failed matters more than whether that can be undone.
      ftruncate(descriptor, 0)
      throw error
    }
  }

  /// Lets LMDB write the meta pages, without a lock file.
  private static func writeMetaPages(_ path: String) throws(LMDBError) {
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    guard let pointer = created else { throw LMDBError(code: MDB_PANIC) }
    defer { mdb_env_close(pointer) }
    try LMDBError.check(mdb_env_open(pointer, path, UInt32(MDB_NOSUBDIR | MDB_NOLOCK), 0o600))
  }
}
#endif
