#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A lock that keeps every other process, and every other object in this one, from the same file.
///
/// It is a file of its own beside what it guards, since a file that is replaced takes its lock with it. The kernel ends
/// the lock when the process dies, however it dies. The file stays, empty; to remove it would let two owners in.
public struct FileLock: Sendable {
  /// Who else may hold the lock.
  public enum Kind: Sendable, Hashable {
    /// Other readers.
    case shared
    /// No one.
    case exclusive
  }

  private let file: any OpenFile

  private init(file: any OpenFile) {
    self.file = file
  }

  /// Takes a lock without waiting.
  ///
  /// - Parameters:
  ///   - path: The file of the lock. An exclusive lock creates it if it is missing; a shared one never does.
  ///   - kind: Who else may hold it; defaults to ``Kind/exclusive``.
  ///   - guarded: The file that the lock guards, whose permissions to read and write and whose owner a new lock file gets;
  ///     defaults to `nil`, for 0600 and the owner of the process.
  ///   - fileSystem: The file system.
  /// - Returns: The lock, or `nil` if another holds one that excludes it.
  /// - Throws: ``FileError``.
  public static func acquire(
    _ path: String, _ kind: Kind = .exclusive, guarding guarded: FileAttributes? = nil, in fileSystem: some FileSystem
  ) throws(FileError) -> FileLock? {
    while true {
      let file = try open(path, kind, guarding: guarded, in: fileSystem)
      guard try file.lock(kind) else { return nil }
      // If the file was removed or replaced since it was opened, another lock is at the path.
      if try fileSystem.identity(at: path) == file.attributes().identity { return FileLock(file: file) }
      try file.close()
    }
  }

  private static func open(
    _ path: String, _ kind: Kind, guarding guarded: FileAttributes?, in fileSystem: some FileSystem
  ) throws(FileError) -> any OpenFile {
    guard kind == .exclusive else { return try fileSystem.open(path, .read) }
    let isNew = try fileSystem.attributes(at: path) == nil
    let file: any OpenFile
    do throws(FileError) {
      file = try fileSystem.open(path, .createIfMissing)
    } catch {
      // Locking takes no right to write: the lock may be another user's who lets this one write to the store.
      guard error.errorNumber == EACCES, !isNew else { throw error }
      return try fileSystem.open(path, .read)
    }
    if isNew, var guarded {
      guarded.permissions = 0o600 | guarded.permissions & 0o666
      try file.adopt(guarded)
    }
    return file
  }

  /// Returns which file the lock is, to be compared with the one at its path.
  ///
  /// - Throws: ``FileError``.
  public func identity() throws(FileError) -> FileAttributes.Identity {
    try file.attributes().identity
  }

  /// Gives the lock back; otherwise it ends with the last copy of this value.
  ///
  /// - Throws: ``FileError``.
  public func release() throws(FileError) {
    try file.close()
  }
}
