#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension OpenFile {
  /// Writes all the given bytes, however many calls it takes.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: Where in the file they go.
  /// - Throws: ``FileError``, with ENOSPC if the system takes no more bytes without an error; some of the bytes may have
  ///   been written then.
  public func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
    var written = 0
    while written < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
      let count = try retryingInterruptions { () throws(FileError) in try write(rest, at: offset + Int64(written)) }
      guard count > 0 else { throw FileError(.write, path: "", errorNumber: ENOSPC) }
      written += count
    }
  }

  /// Reads all the bytes of the file.
  ///
  /// - Throws: ``FileError``.
  public func readAll() throws(FileError) -> [UInt8] {
    let size = try attributes().size
    return try readAll(from: 0, upTo: size)
  }

  /// Reads the bytes between two places, or up to the end of the file where that comes first.
  ///
  /// - Parameters:
  ///   - start: The first byte.
  ///   - end: The byte behind the last one.
  /// - Throws: ``FileError``.
  public func readAll(from start: Int64, upTo end: Int64) throws(FileError) -> [UInt8] {
    // Without room an array has the storage that all empty ones share, into which its initializer writes the count: a race
    // that the thread sanitizer reports.
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

  /// Reads the bytes between two places, with zeros for blocks of 4,096 bytes that the disk cannot read (EIO).
  ///
  /// - Parameters:
  ///   - start: The first byte.
  ///   - end: The byte behind the last one, or a place behind the end of the file.
  /// - Returns: The bytes, and whether the disk could read all of them.
  /// - Throws: ``FileError`` for any other failure.
  public func readable(from start: Int64, upTo end: Int64) throws(FileError) -> (bytes: [UInt8], isWhole: Bool) {
    do throws(FileError) {
      return (try readAll(from: start, upTo: end), true)
    } catch {
      guard error.errorNumber == EIO else { throw error }
    }
    let end = min(end, try attributes().size)
    var bytes: [UInt8] = []
    var offset = start
    while offset < end {
      let next = min((offset / 4096 + 1) * 4096, end)
      do throws(FileError) {
        bytes += try readAll(from: offset, upTo: next)
      } catch {
        guard error.errorNumber == EIO else { throw error }
        bytes += [UInt8](repeating: 0, count: Int(next - offset))
      }
      offset = next
    }
    return (bytes, false)
  }

  /// Makes the content and the size of the file durable; see ``synchronize()``, which it calls again only after EINTR.
  ///
  /// EINTR says that nothing was tried; any other error leaves the file in an unknown state.
  ///
  /// - Throws: ``FileError``.
  public func synchronizeThroughInterruptions() throws(FileError) {
    try retryingInterruptions { () throws(FileError) in try synchronize() }
  }
}

/// Calls again as long as a signal interrupts the call.
func retryingInterruptions<Result>(_ body: () throws(FileError) -> Result) throws(FileError) -> Result {
  while true {
    do throws(FileError) {
      return try body()
    } catch {
      guard error.errorNumber == EINTR else { throw error }
    }
  }
}
