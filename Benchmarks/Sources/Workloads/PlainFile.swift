import Foundation

/// A file that is written by plain system calls, the yardstick for stores with files.
final class PlainFile: Sendable {
  private let handle: FileHandle

  /// Creates an empty file to append to.
  init(appendingTo path: String) throws {
    handle = FileHandle(fileDescriptor: open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600), closeOnDealloc: true)
    guard handle.fileDescriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
  }

  /// Appends bytes in one system call.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - isDurable: A Boolean value that indicates whether to wait for the disk.
  func append(_ bytes: [UInt8], isDurable: Bool) throws {
    guard write(handle.fileDescriptor, bytes, bytes.count) == bytes.count else { throw CocoaError(.fileWriteUnknown) }
    guard isDurable else { return }
    #if canImport(Darwin)
    guard fcntl(handle.fileDescriptor, F_FULLFSYNC) == 0 else { throw CocoaError(.fileWriteUnknown) }
    #else
    guard fdatasync(handle.fileDescriptor) == 0 else { throw CocoaError(.fileWriteUnknown) }
    #endif
  }
}
