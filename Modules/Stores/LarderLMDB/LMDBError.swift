#if LMDB
import CLMDB
public import Larder
import LarderFiles

/// An error code that the LMDB library returned, from itself or from the operating system.
///
/// `StoreError.underlying` holds one of these if an ``LMDBStore`` throws because of LMDB.
public struct LMDBError: RedactedError, Hashable {
  /// The error code: negative for LMDB's own errors, which `lmdb.h` lists, else an `errno` of the operating system.
  public let code: Int32

  /// Creates an error.
  ///
  /// - Parameter code: The code that the library returned.
  public init(code: Int32) {
    self.code = code
  }

  /// The code of LMDB 1.0 for an incomplete write (`MDB_SHORT_WRITE`), which the header of LMDB 0.9 lacks.
  static let shortWrite: Int32 = -30772

  /// Throws an error unless the code of a call means success.
  ///
  /// - Parameter code: The code that the library returned.
  static func check(_ code: Int32) throws(LMDBError) {
    if code != MDB_SUCCESS { throw LMDBError(code: code) }
  }
}

extension LMDBError: CustomStringConvertible {
  /// The library's message and the code.
  public var description: String {
    "\(mdb_strerror(code).map { String(cString: $0) } ?? "unknown") (\(code))"
  }
}

extension StoreError {
  /// Creates a store error from a failed LMDB call.
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
  /// Returns the code of the store error that represents this error.
  func storeErrorCode(during operation: StoreOperation) -> StoreError.Code {
    switch code {
    case MDB_MAP_FULL, MDB_DBS_FULL, MDB_READERS_FULL, MDB_TXN_FULL: .full
    case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_CURSOR_FULL, MDB_PAGE_FULL: .corrupted
    case MDB_INVALID: .unrecognizedFormat
    // LMDB 1.0 notices that another program has removed a named database.
    case MDB_BAD_DBI: .conflict
    case MDB_VERSION_MISMATCH: .versionMismatch
    case MDB_INCOMPATIBLE: .unsupported
    default: systemError.code(during: operation)
    }
  }

  /// The error of the operating system with the same code.
  private var systemError: FileError { FileError(.open, path: "", errorNumber: code) }

  /// A Boolean value that indicates whether the same call may succeed later, when resources have been freed.
  var isTransient: Bool {
    storeErrorCode(during: .write) == .full || code == MDB_MAP_RESIZED || systemError.isTransient
  }
}
#endif
