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

/// The lock file of an environment, with the table of readers, which LMDB maps and writes to.
enum LockFile {
  /// The size that LMDB gives it for as many readers as an environment allows, or somewhat more.
  private static let size = 1 << 16

  /// Makes sure that the disk has room for the whole of it: where it had not, to touch the map would end the process.
  ///
  /// Nothing in this process may have the environment open: to close any descriptor of a file gives up the process's
  /// locks on it.
  ///
  /// - Parameters:
  ///   - path: The lock file; it is made where it is not there. Its size and content stay, as others may be using it.
  ///   - store: The name of the environment, for errors.
  /// - Throws: ``StoreError``.
  static func allocate(_ path: String, store: String) throws {
    #if os(Linux)
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw EnvironmentFiles.error(errno, "the lock file cannot be opened", store: store)
    }
    defer { close(descriptor) }
    while fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, off_t(size)) != 0 {
      switch errno {
      case EINTR: continue
      case ENOSPC, EDQUOT: throw EnvironmentFiles.error(errno, "the lock file cannot be allocated", store: store)
      // This file system cannot tell beforehand.
      default: return
      }
    }
    #endif
  }
}
#endif
