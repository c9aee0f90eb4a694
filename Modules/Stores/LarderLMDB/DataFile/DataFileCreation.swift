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

/// Turns a missing or empty data file into the data file of an empty environment.
///
/// The lock file is created only afterwards. An empty data file beside a lock file was therefore emptied later. An
/// empty data file without a lock file is being created, or its process died while creating it.
enum DataFileCreation {
  /// Creates the data file unless another process is faster.
  ///
  /// Blocks while another process creates it.
  ///
  /// Nothing in this process may have the environment open, because closing any descriptor of a file releases the
  /// process's locks on that file.
  ///
  /// - Parameters:
  ///   - path: The path of the data file. A new file has permissions 0600.
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

/// A file that is written once, by C functions that take a descriptor.
struct NewFile: ~Copyable {
  let descriptor: Int32

  /// Creates the file with permissions 0600.
  ///
  /// Nothing may exist at the path.
  init(_ path: String) throws(LMDBError) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw LMDBError(code: errno) }
  }

  /// Flushes the content to disk.
  borrowing func finish() throws(LMDBError) {
    guard fsync(descriptor) == 0 else { throw LMDBError(code: errno) }
  }

  deinit {
    close(descriptor)
  }
}
#endif
