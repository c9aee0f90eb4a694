#if SQLite
import CSQLite
import Foundation
public import Larder
import LarderSQLiteFormat

/// An error that the SQLite library returned.
///
/// `StoreError.underlying` holds one of these if an `SQLiteStore` throws because of SQLite.
public struct SQLiteError: RedactedError, Hashable {
  /// The extended result code, which [the list of SQLite](https://sqlite.org/rescode.html) explains.
  ///
  /// If a trigger ignored a change, so SQLite reported no error, it is `SQLITE_CONSTRAINT_TRIGGER`.
  public let code: Int32

  /// The message of the library, or of a trigger of the user.
  public let message: String

  /// The system's reason for a file that could not be opened, read or written: a value of `errno`, such as `ENOSPC`, or
  /// 0 if there isn't one.
  public let errorNumber: Int32

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The extended result code.
  ///   - message: The message.
  ///   - errorNumber: The system's reason, a value of `errno`. Defaults to 0, for no reason.
  public init(code: Int32, message: String, errorNumber: Int32 = 0) {
    self.code = code
    self.message = message
    self.errorNumber = errorNumber
  }

  /// Creates an error with the library's general text for a code.
  init(code: Int32) {
    self.init(code: code, message: String(cString: sqlite3_errstr(code)))
  }

  /// Creates the error of the latest call on a connection, which failed with a code.
  init(code: Int32, on connection: OpaquePointer) {
    // SQLite notes the reason of these errors only.
    let hasReason = [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF)
    // That of a failed commit is noted with the file of the log alone.
    let logReason = code & 0xFF == SQLITE_IOERR ? SQLiteError.errorNumber(ofLogOf: connection) : 0
    self.init(
      code: code, message: String(cString: sqlite3_errmsg(connection)),
      errorNumber: logReason != 0 ? logReason : hasReason ? sqlite3_system_errno(connection) : 0)
  }

  /// Returns the system's reason for the last failure on the log of a connection, or 0.
  private static func errorNumber(ofLogOf connection: OpaquePointer) -> Int32 {
    var log: UnsafeMutablePointer<sqlite3_file>?
    guard sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK,
      let log, let control = log.pointee.pMethods?.pointee.xFileControl
    else { return 0 }
    var errorNumber: Int32 = 0
    return control(log, SQLITE_FCNTL_LAST_ERRNO, &errorNumber) == SQLITE_OK ? errorNumber : 0
  }

  /// `SQLITE_CONSTRAINT_TRIGGER`, which Swift does not import.
  static let refusedByTrigger: Int32 = SQLITE_CONSTRAINT | 7 << 8

  /// The code without the details: the lowest byte of the extended code.
  var primaryCode: Int32 { code & 0xFF }

  /// A Boolean value that indicates whether the permissions of a file forbid the access.
  var isAccessDenied: Bool { [EACCES, EPERM, EROFS].contains(errorNumber) }

  /// A Boolean value that indicates whether there is no room for the index of the log.
  var isFullIndex: Bool {
    // `SQLITE_IOERR_SHMOPEN`, `SQLITE_IOERR_SHMSIZE` and `SQLITE_IOERR_SHMMAP`, which Swift does not import.
    primaryCode == SQLITE_IOERR && [18, 19, 21].contains(code >> 8) && [ENOSPC, EDQUOT].contains(errorNumber)
  }

  /// A Boolean value that indicates whether another connection has the lock that a call needs.
  var isBusy: Bool { primaryCode == SQLITE_BUSY }
}

extension SQLiteError: CustomStringConvertible {
  /// The library's message and the code, and the system's reason if there is one.
  public var description: String {
    guard errorNumber != 0 else { return "\(message) (\(code))" }
    let reason = strerror(errorNumber).map { String(cString: $0) } ?? "unknown error"
    return "\(message) (\(code)): \(reason) (errno \(errorNumber))"
  }
}

extension StoreError {
  /// Creates a store error from a failed call of SQLite.
  ///
  /// - Parameters:
  ///   - error: The failed call.
  ///   - operation: The operation of the store.
  ///   - store: The name of the store.
  ///   - message: A message that describes the failure. The description adds the library's own.
  ///   - outcome: The outcome. It says whether anything may have been changed. Defaults to `nothingChanged`.
  ///   - isWrite: A Boolean value that indicates whether a transaction that writes failed. Defaults to `false`.
  init(
    _ error: SQLiteError, during operation: StoreOperation, store: String, message: String,
    outcome: Outcome = .nothingChanged, isWrite: Bool = false
  ) {
    self.init(
      SQLiteResultCode.storeErrorCode(error.code, errorNumber: error.errorNumber, isWrite: isWrite), during: operation,
      store: store, message: message, underlying: error,
      isRetryable: SQLiteResultCode.isTransient(error.code, errorNumber: error.errorNumber), outcome: outcome)
  }
}
#endif
