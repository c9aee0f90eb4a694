public import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A failed call to the file system: which, on what, and the number of the error as the system gave it.
public struct FileError: ValueFreeError, Sendable, Hashable {
  /// The calls that can fail.
  public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// ``FileSystem/open(_:_:)``.
    case open
    /// ``FileSystem/rename(_:to:)``.
    case rename
    /// ``FileSystem/removeFile(at:)``.
    case removeFile
    /// ``FileSystem/createDirectory(at:)``.
    case createDirectory
    /// ``FileSystem/synchronizeDirectory(at:)``.
    case synchronizeDirectory
    /// ``FileSystem/contentsOfDirectory(at:)``.
    case contentsOfDirectory
    /// ``FileSystem/attributes(at:)``, ``FileSystem/isMountPoint(at:)`` and ``OpenFile/attributes()``.
    case attributes
    /// ``FileSystem/canonicalPath(of:)``.
    case canonicalPath
    /// ``OpenFile/read(into:at:)``.
    case read
    /// ``OpenFile/write(_:at:)``.
    case write
    /// ``OpenFile/truncate(to:)``.
    case truncate
    /// ``OpenFile/synchronize()``.
    case synchronize
    /// ``OpenFile/setPermissions(_:)``.
    case setPermissions
    /// ``OpenFile/setOwner(_:)``.
    case setOwner
    /// ``OpenFile/setModificationTime(_:)``.
    case setModificationTime
    /// ``OpenFile/lock(_:)``.
    case lock
    /// ``OpenFile/close()``.
    case close
  }

  /// The call.
  public let operation: Operation

  /// The file or directory.
  public let path: String

  /// The number of the error: a value of `errno`, like `ENOSPC`.
  public let errorNumber: Int32

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - operation: The call.
  ///   - path: The file or directory.
  ///   - errorNumber: A value of `errno`.
  public init(_ operation: Operation, path: String, errorNumber: Int32) {
    self.operation = operation
    self.path = path
    self.errorNumber = errorNumber
  }
}

extension FileError: CustomStringConvertible {
  /// The error for people to read, in one line.
  public var description: String {
    let reason = strerror(errorNumber).map { String(cString: $0) } ?? "unknown error"
    return "\(operation.rawValue) \(path): \(reason) (errno \(errorNumber))"
  }
}
