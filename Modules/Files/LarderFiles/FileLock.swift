/// A lock on a file that excludes all other processes, and all other objects in this process.
///
/// The lock uses a lock file beside the guarded file, because a file that is replaced would take its lock with it. The
/// kernel releases the lock when the process ends for any reason. The lock file stays and is empty. Removing it would
/// allow two owners.
///
/// ```swift
/// func save(_ text: String, at path: String, in fileSystem: some StoreFileSystem) throws {
///   guard let lock = try FileLock.acquire(path + ".lock", in: fileSystem) else { throw InUse() }
///   // Writes a temporary file, synchronizes it and renames it. A crash leaves the old file or the new one.
///   let result = Result { try fileSystem.replaceFile(at: path) { try $0.write(Array(text.utf8)) } }
///   try lock.release()
///   try result.get()
/// }
/// ```
public struct FileLock: Sendable {
  /// The locks that other owners may hold at the same time.
  public enum Kind: Sendable, Hashable {
    /// Other owners may hold shared locks.
    case shared
    /// No other owner may hold a lock.
    case exclusive
  }

  private let file: any OpenStoreFile

  /// Acquires a lock without waiting.
  ///
  /// - Parameters:
  ///   - path: The path of the lock file. An exclusive lock creates the file if it is missing; a shared lock does not.
  ///   - kind: The kind of lock. Defaults to ``Kind/exclusive``.
  ///   - guarded: The attributes of the guarded file. A new lock file gets its owner and its read and write
  ///     permissions. Defaults to `nil`, meaning 0600 and the owner of the process.
  ///   - fileSystem: The file system.
  /// - Returns: The lock, or `nil` if another owner holds a conflicting lock.
  /// - Throws: ``FileError``.
  public static func acquire(
    _ path: String, _ kind: Kind = .exclusive, guarding guarded: FileAttributes? = nil,
    in fileSystem: some StoreFileSystem
  ) throws(FileError) -> FileLock? {
    while true {
      let file = try open(path, kind, guarding: guarded, in: fileSystem)
      guard try file.lock(kind) else { return nil }
      // If the file was removed or replaced after it was opened, a different lock file is at the path.
      if try fileSystem.identity(at: path) == file.attributes().identity { return FileLock(file: file) }
      try file.close()
    }
  }

  private static func open(
    _ path: String, _ kind: Kind, guarding guarded: FileAttributes?, in fileSystem: some StoreFileSystem
  ) throws(FileError) -> any OpenStoreFile {
    guard kind == .exclusive else { return try fileSystem.open(path, .read) }
    let isNew = try fileSystem.attributes(at: path) == nil
    let file: any OpenStoreFile
    do throws(FileError) {
      file = try fileSystem.open(path, .createIfMissing)
    } catch {
      // Locking needs no write permission. The lock file may belong to another user who allows this one to write to the
      // store.
      guard error.isAccessDenied, !isNew else { throw error }
      return try fileSystem.open(path, .read)
    }
    if isNew, var guarded {
      guarded.permissions = 0o600 | guarded.permissions & 0o666
      try file.adopt(guarded)
    }
    return file
  }

  /// Returns the identity of the lock file, to compare it with the file at its path.
  ///
  /// - Throws: ``FileError``.
  public func identity() throws(FileError) -> FileAttributes.Identity {
    try file.attributes().identity
  }

  /// Releases the lock.
  ///
  /// Otherwise, it is released with the last copy of this value.
  ///
  /// ```swift
  /// guard let lock = try FileLock.acquire(path + ".lock", .shared, in: fileSystem) else { throw InUse() }
  /// try lock.release()
  /// ```
  ///
  /// - Throws: ``FileError``.
  public func release() throws(FileError) {
    try file.close()
  }
}
