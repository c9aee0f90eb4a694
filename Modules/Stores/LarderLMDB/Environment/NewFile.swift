#if LMDB
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A file that is written once, by others than Swift.
struct NewFile: ~Copyable {
  let descriptor: Int32

  /// Makes the file, with permissions 0600; nothing may be at the path.
  init(_ path: String) throws(LMDBError) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw LMDBError(code: errno) }
  }

  /// Makes the content durable.
  borrowing func finish() throws(LMDBError) {
    guard fsync(descriptor) == 0 else { throw LMDBError(code: errno) }
  }

  deinit {
    close(descriptor)
  }
}
#endif
