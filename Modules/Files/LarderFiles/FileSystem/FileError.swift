import Foundation
public import Larder

/// A failed file system call: the operation, the path and the error number.
///
/// ```swift
/// throw FileError(.open, path: path, errorNumber: ENOENT)
/// ```
public struct FileError: RedactedError, Sendable, Hashable {
  /// The operations that can fail.
  public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// The operation ``StoreFileSystem/open(_:_:)``.
    case open
    /// The operation ``StoreFileSystem/rename(_:to:)``.
    case rename
    /// The operation ``StoreFileSystem/removeFile(at:)``.
    case removeFile
    /// The operation ``StoreFileSystem/createDirectory(at:)``.
    case createDirectory
    /// The operation ``StoreFileSystem/synchronizeDirectory(at:)``.
    case synchronizeDirectory
    /// The operation ``StoreFileSystem/contentsOfDirectory(at:)``.
    case contentsOfDirectory
    /// The operations ``StoreFileSystem/attributes(at:)``, ``StoreFileSystem/isMountPoint(at:)`` and ``OpenStoreFile/attributes()``.
    case attributes
    /// The operation ``StoreFileSystem/canonicalPath(of:)``.
    case canonicalPath
    /// The operation ``OpenStoreFile/read(into:at:)``.
    case read
    /// The operation ``OpenStoreFile/write(_:at:)``.
    case write
    /// The operation ``OpenStoreFile/truncate(to:)``.
    case truncate
    /// The operation ``OpenStoreFile/synchronize()``.
    case synchronize
    /// The operation ``OpenStoreFile/setPermissions(_:)``.
    case setPermissions
    /// The operation ``OpenStoreFile/setOwner(_:)``.
    case setOwner
    /// The operation ``OpenStoreFile/setModificationTime(_:)``.
    case setModificationTime
    /// The operation ``OpenStoreFile/lock(_:)``.
    case lock
    /// The operation ``OpenStoreFile/close()``.
    case close
  }

  /// The operation that failed.
  public let operation: Operation

  /// The path of the file or directory.
  public let path: String

  /// The error number: a value of `errno`, such as `ENOSPC`.
  public let errorNumber: Int32

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - operation: The operation that failed.
  ///   - path: The path of the file or directory.
  ///   - errorNumber: A value of `errno`.
  public init(_ operation: Operation, path: String, errorNumber: Int32) {
    self.operation = operation
    self.path = path
    self.errorNumber = errorNumber
  }
}

extension FileError: CustomStringConvertible {
  /// A one-line description of the error.
  public var description: String {
    let reason = strerror(errorNumber).map { String(cString: $0) } ?? "unknown error"
    return "\(operation.rawValue) \(path): \(reason) (errno \(errorNumber))"
  }
}

extension StoreError {
  /// Creates a store error from a failed file system call.
  ///
  /// ```swift
  /// do {
  ///   try file.writeAll(record, at: 0)
  /// } catch {
  ///   throw StoreError(error, during: .apply, store: "users", message: "the record cannot be written")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - error: The failed call. It becomes the underlying error.
  ///   - operation: The operation of the store.
  ///   - store: The name of the store.
  ///   - key: The key concerned. Defaults to `nil`.
  ///   - message: A message that describes the failure.
  ///   - outcome: The outcome. It says whether anything may have been changed. Defaults to `nothingChanged`.
  public init(
    _ error: FileError, during operation: StoreOperation, store: String, key: StoreKey? = nil, message: String,
    outcome: Outcome = .nothingChanged
  ) {
    self.init(
      error.code(during: operation), during: operation, store: store, key: key, message: message, underlying: error,
      isRetryable: error.isTransient, outcome: outcome)
  }
}

extension FileError {
  /// A Boolean value that indicates whether the disk could not read or write a part of the file.
  public var isDiskFailure: Bool { errorNumber == EIO }

  /// A Boolean value that indicates whether there is nothing at the path.
  public var isMissing: Bool { errorNumber == ENOENT }

  /// A Boolean value that indicates whether something exists at the path already.
  public var isExisting: Bool { [EEXIST, ENOTEMPTY].contains(errorNumber) }

  /// A Boolean value that indicates whether the disk or a quota was full.
  public var isOutOfRoom: Bool { errorNumber == ENOSPC || errorNumber == EDQUOT }

  /// A Boolean value that indicates whether the permissions of the file or of a folder forbid the access.
  var isAccessDenied: Bool { errorNumber == EACCES }

  /// A Boolean value that indicates whether the file system cannot lock files, as some on a network or in user space
  /// cannot.
  var lacksLocks: Bool { operation == .lock && [ENOSYS, EOPNOTSUPP, ENOTSUP, ENOLCK].contains(errorNumber) }

  /// A Boolean value that indicates whether a signal interrupted the call.
  var isInterruption: Bool { errorNumber == EINTR }

  /// A Boolean value that indicates whether the failed replacement of a file may have taken effect, or may do so after
  /// power loss.
  public var leavesReplacementInDoubt: Bool { operation == .rename || operation == .synchronizeDirectory }

  /// The error of a write that reports no error and writes nothing.
  static let nothingWritten = FileError(.write, path: "", errorNumber: ENOSPC)

  /// The error of a file that is shorter than its records.
  static let tooShort = FileError(.truncate, path: "", errorNumber: EINVAL)

  /// Returns the error of bytes that the disk cannot read.
  public static func unreadable(_ path: String) -> FileError { FileError(.read, path: path, errorNumber: EIO) }

  /// Returns the code of the store error that represents this error.
  public func code(during operation: StoreOperation) -> StoreError.Code {
    switch errorNumber {
    case ENOSPC, EDQUOT, EFBIG: .full
    case EACCES, EPERM, EROFS: .notPermitted
    // While a store is being opened, these errors concern its path. Later, they mean that the files of an open store
    // are damaged.
    case ENOENT where operation == .open: .notFound
    case EISDIR where operation == .open: .unrecognizedFormat
    case ENOTDIR, ENAMETOOLONG, ELOOP, EINVAL: operation == .open ? .invalidArgument : .ioFailed
    default: .ioFailed
    }
  }

  /// A Boolean value that indicates whether the same call may succeed later, when resources have been freed or without
  /// an interruption.
  public var isTransient: Bool {
    [EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT].contains(errorNumber)
  }
}
