#if LMDB
import CLMDB
import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension StoreError {
  /// Makes the error of a store out of a failed call of LMDB.
  init(
    _ error: LMDBError, during operation: StoreOperation, store: String, key: StoreKey? = nil, message: String,
    outcome: Outcome = .nothingChanged
  ) {
    self.init(
      error.storeErrorCode(during: operation), during: operation, store: store, key: key, message: message,
      underlying: error, isRetryable: error.isTransient, outcome: outcome)
  }
}

extension LMDBError {
  /// The code of the store error that this becomes.
  func storeErrorCode(during operation: StoreOperation) -> StoreError.Code {
    switch code {
    case MDB_MAP_FULL, MDB_DBS_FULL, MDB_READERS_FULL, MDB_TXN_FULL, ENOSPC, EDQUOT, EFBIG: .full
    case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_CURSOR_FULL, MDB_PAGE_FULL: .corrupted
    case MDB_INVALID: .unrecognizedFormat
    case MDB_VERSION_MISMATCH: .versionMismatch
    case MDB_INCOMPATIBLE: .unsupported
    case EACCES, EPERM, EROFS: .notPermitted
    case ENOENT where operation == .open: .notFound
    default: .ioFailed
    }
  }

  /// Whether the same call can go well later, when the machine has more to give or others let go.
  var isTransient: Bool {
    [MDB_MAP_FULL, MDB_MAP_RESIZED, MDB_READERS_FULL, EAGAIN, EINTR, EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EFBIG]
      .contains(
        code)
  }
}
#endif
