/// A file that a ``FileSystem`` has opened.
///
/// It is closed by ``close()``, or with its last reference. Its operations may be called from several threads at once.
public protocol OpenFile: AnyObject, Sendable {
  /// Reads bytes.
  ///
  /// - Parameters:
  ///   - buffer: Gets the bytes.
  ///   - offset: Where in the file they stand.
  /// - Returns: How many bytes were read: fewer than there is room for near the end, or at any time; 0 only at the end.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int

  /// Writes bytes, beyond the end too.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: Where in the file they go.
  /// - Returns: How many bytes were written: possibly fewer than were given.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int

  /// Makes the file as long as said.
  func truncate(to size: Int64) throws(FileError)

  /// Makes the content and the size of the file durable.
  ///
  /// Once it has failed the file is in an unknown state: the system may have dropped what was written and report success
  /// the next time. So never call it again on this file.
  func synchronize() throws(FileError)

  /// What the file is.
  func attributes() throws(FileError) -> FileAttributes

  /// Changes the permission bits of the file.
  func setPermissions(_ permissions: UInt32) throws(FileError)

  /// Changes the user and the group that the file belongs to, which may clear permission bits above 0o777.
  ///
  /// It fails with EPERM if the process may not do that; on most systems only root may change the user.
  func setOwner(_ owner: FileAttributes.Owner) throws(FileError)

  /// Sets the time at which the content was last changed, in nanoseconds since 1 January 1970, UTC.
  func setModificationTime(_ time: Int64) throws(FileError)

  /// Takes the lock of the file, without waiting.
  ///
  /// The lock counts against every other opening of the file, in this process and in others, and ends with this object or
  /// its process, however that dies.
  ///
  /// - Parameter kind: Whether others may hold a shared lock at the same time.
  /// - Returns: Whether the lock was taken; `false` if another holds one that excludes it.
  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool

  /// Closes the file; afterwards every operation fails with EBADF.
  ///
  /// Closing again does nothing.
  func close() throws(FileError)
}
