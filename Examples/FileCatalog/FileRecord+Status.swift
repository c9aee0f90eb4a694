#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension FileRecord {
  /// Creates a record from a file's status.
  init(_ status: stat) {
    let kind: FileKind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .folder
      case S_IFLNK: .symbolicLink
      default: .other
      }
    #if canImport(Darwin)
    let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
    #else
    let (modified, changed) = (status.st_mtim, status.st_ctim)
    #endif
    self.init(
      kind: kind,
      size: Int64(status.st_size),
      mode: UInt32(status.st_mode & ~S_IFMT),
      modified: FileTime(modified),
      changed: FileTime(changed))
  }
}

extension FileTime {
  /// Converts a time of the system.
  init(_ time: timespec) {
    self.init(seconds: Int64(time.tv_sec), nanoseconds: Int32(time.tv_nsec))
  }
}
