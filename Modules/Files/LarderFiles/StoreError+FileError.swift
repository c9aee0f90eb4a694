public import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension StoreError {
  /// Makes the error of a store out of a failed call to the file system.
  ///
  /// - Parameters:
  ///   - error: The failed call; it becomes the underlying error.
  ///   - operation: What was asked of the store.
  ///   - store: The name of the store.
  ///   - message: What the call was for, for people to read.
  ///   - outcome: Whether anything may have been changed; `nothingChanged` unless said.
  public init(
    _ error: FileError, during operation: StoreOperation, store: String, message: String,
    outcome: Outcome = .nothingChanged
  ) {
    self.init(
      error.code(during: operation), during: operation, store: store, message: message, underlying: error,
      isRetryable: error.isTransient, outcome: outcome)
  }
}

extension FileError {
  /// The code of the store error that this becomes.
  func code(during operation: StoreOperation) -> StoreError.Code {
    switch errorNumber {
    case ENOSPC, EDQUOT, EFBIG: .full
    case EACCES, EPERM, EROFS: .notPermitted
    // While a store is being opened these speak of its path; later something is wrong with the files of an open store.
    case ENOENT where operation == .open: .notFound
    case EISDIR where operation == .open: .unrecognizedFormat
    case ENOTDIR, ENAMETOOLONG, ELOOP, EINVAL: operation == .open ? .invalidArgument : .ioFailed
    default: .ioFailed
    }
  }

  /// Whether the same call can go well later, when the machine has more to give or nobody interrupts.
  var isTransient: Bool {
    [EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT].contains(errorNumber)
  }
}
