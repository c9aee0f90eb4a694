/// A file opened by a ``StoreFileSystem``.
///
/// The file is closed by ``close()`` or when its last reference is released. Its operations may be called concurrently
/// from several threads.
///
/// ```swift
/// let file = try fileSystem.open(path, .read)
/// let header = try file.readAll(from: 0, upTo: 16)
/// try file.close()
/// ```
public protocol OpenStoreFile: AnyObject, Sendable {
  /// Reads bytes.
  ///
  /// - Parameters:
  ///   - buffer: The buffer that receives the bytes.
  ///   - offset: The offset of the first byte in the file.
  /// - Returns: The number of bytes read. It may be less than the size of the buffer. It is 0 only at the end of the
  ///   file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int

  /// Writes bytes. The range may extend beyond the end of the file.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: The offset of the first byte in the file.
  /// - Returns: The number of bytes written. It may be less than the number given.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int

  /// Changes the size of the file.
  func truncate(to size: Int64) throws(FileError)

  /// Flushes the content and the size of the file to disk.
  ///
  /// If this fails, the state of the file is unknown: the system may have dropped written data and report success the
  /// next time. You must never call it again on this file.
  func synchronize() throws(FileError)

  /// Returns the attributes of the file.
  func attributes() throws(FileError) -> FileAttributes

  /// Returns the size in bytes.
  ///
  /// The default implementation returns the size in ``attributes()``. A file system may have a faster implementation.
  func size() throws(FileError) -> Int64

  /// Changes the permission bits of the file.
  func setPermissions(_ permissions: UInt32) throws(FileError)

  /// Changes the user and the group that own the file, which may clear permission bits above 0o777.
  ///
  /// It fails with EPERM if the process is not allowed to do this. On most systems, only root may change the user.
  func setOwner(_ owner: FileAttributes.Owner) throws(FileError)

  /// Sets the modification time of the content, in nanoseconds since 1 January 1970, UTC.
  func setModificationTime(_ time: Int64) throws(FileError)

  /// Acquires the lock of the file without waiting.
  ///
  /// The lock excludes every other opening of the file, in this process and in others. It ends with this object or with
  /// its process, even if the process is killed.
  ///
  /// - Parameter kind: The kind of the lock. Others may hold a shared lock at the same time.
  /// - Returns: A Boolean value that indicates whether the lock was acquired. It is not if another owner holds a
  ///   conflicting lock.
  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool

  /// Closes the file. Afterward, every operation fails with EBADF.
  ///
  /// Closing again is a no-op.
  func close() throws(FileError)
}

extension OpenStoreFile {
  /// Returns the size in ``attributes()``.
  public func size() throws(FileError) -> Int64 { try attributes().size }

  /// Writes all given bytes, in several calls if necessary.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: The offset of the first byte in the file.
  /// - Throws: ``FileError``, with ENOSPC if the system writes no more bytes without reporting an error. Some of the
  ///   bytes may have been written.
  public func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
    var written = 0
    while written < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
      let count = try retryingInterruptions { () throws(FileError) in try write(rest, at: offset + Int64(written)) }
      guard count > 0 else { throw .nothingWritten }
      written += count
    }
  }

  /// Writes all given bytes, in several calls if necessary.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: The offset of the first byte in the file.
  /// - Throws: ``FileError``, with ENOSPC if the system writes no more bytes without reporting an error. Some of the
  ///   bytes may have been written.
  public func writeAll(_ bytes: [UInt8], at offset: Int64) throws(FileError) {
    try bytes.withUnsafeBufferPointer { bytes throws(FileError) in
      try writeAll(UnsafeRawBufferPointer(bytes), at: offset)
    }
  }

  /// Returns all bytes of the file.
  ///
  /// - Throws: ``FileError``.
  public func readAll() throws(FileError) -> [UInt8] {
    try readAll(from: 0, upTo: attributes().size)
  }

  /// Returns the bytes in a range of offsets, or fewer if the file ends earlier.
  ///
  /// - Parameters:
  ///   - start: The offset of the first byte.
  ///   - end: The offset after the last byte.
  /// - Throws: ``FileError``.
  public func readAll(from start: Int64, upTo end: Int64) throws(FileError) -> [UInt8] {
    // An empty array uses storage shared by all empty arrays, into which this initializer would write the count. The
    // thread sanitizer reports that as a race.
    guard end > start else { return [] }
    var failure: FileError?
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(end - start)) { buffer, count in
      do throws(FileError) {
        while count < buffer.count {
          let rest = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[count...]))
          let place = start + Int64(count)
          let readCount = try retryingInterruptions { () throws(FileError) in try read(into: rest, at: place) }
          guard readCount > 0 else { return }
          count += readCount
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Returns the bytes in a range of offsets, with zeros for blocks of 4,096 bytes that the disk cannot read (EIO).
  ///
  /// - Parameters:
  ///   - start: The offset of the first byte.
  ///   - end: The offset after the last byte. It may be beyond the end of the file.
  /// - Returns: The bytes, and whether the disk could read all of them.
  /// - Throws: ``FileError`` for any other failure.
  public func readable(from start: Int64, upTo end: Int64) throws(FileError) -> (bytes: [UInt8], isWhole: Bool) {
    do throws(FileError) {
      return (try readAll(from: start, upTo: end), true)
    } catch {
      guard error.isDiskFailure else { throw error }
    }
    let end = min(end, try attributes().size)
    var bytes: [UInt8] = []
    var offset = start
    while offset < end {
      let next = min((offset / 4096 + 1) * 4096, end)
      do throws(FileError) {
        bytes += try readAll(from: offset, upTo: next)
      } catch {
        guard error.isDiskFailure else { throw error }
        bytes += [UInt8](repeating: 0, count: Int(next - offset))
      }
      offset = next
    }
    return (bytes, false)
  }

  /// Flushes the content and the size of the file to disk with ``synchronize()``, which is retried only after EINTR.
  ///
  /// EINTR means that nothing was attempted. Any other error leaves the file in an unknown state.
  ///
  /// - Throws: ``FileError``.
  public func synchronizeThroughInterruptions() throws(FileError) {
    try retryingInterruptions { () throws(FileError) in try synchronize() }
  }
}

/// Runs a closure, and retries it while a signal interrupts the call.
func retryingInterruptions<Result>(_ body: () throws(FileError) -> Result) throws(FileError) -> Result {
  while true {
    do throws(FileError) {
      return try body()
    } catch {
      guard error.isInterruption else { throw error }
    }
  }
}
