#if SQLite
import CSQLite
public import Larder
import LarderSQLiteFormat

/// An error that the SQLite library returned.
///
/// `StoreError.underlying` holds one of these if an `SQLiteStore` throws because of SQLite.
public struct SQLiteError: ValueFreeError, Hashable {
  /// The extended result code, which [the list of SQLite](https://sqlite.org/rescode.html) explains.
  public let code: Int32

  /// The message of the library, or of a trigger of the user.
  public let message: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The extended result code.
  ///   - message: The message.
  public init(code: Int32, message: String) {
    self.code = code
    self.message = message
  }

  /// Creates an error with the library's general text for a code.
  init(code: Int32) {
    self.init(code: code, message: String(cString: sqlite3_errstr(code)))
  }

  /// The code without the details: the lowest byte of the extended code.
  var primaryCode: Int32 { code & 0xFF }
}

extension SQLiteError: CustomStringConvertible {
  /// The library's message and the code.
  public var description: String { "\(message) (\(code))" }
}

extension StoreError {
  /// Creates a store error from a failed call of SQLite.
  ///
  /// - Parameters:
  ///   - error: The failed call.
  ///   - operation: The operation of the store.
  ///   - store: The name of the store.
  ///   - message: A message that describes the failure. The description adds the library's own.
  ///   - outcome: Whether anything may have been changed. Defaults to `nothingChanged`.
  ///   - isWrite: Whether a transaction that writes failed. Defaults to `false`.
  init(
    _ error: SQLiteError, during operation: StoreOperation, store: String, message: String,
    outcome: Outcome = .nothingChanged, isWrite: Bool = false
  ) {
    self.init(
      SQLiteResultCode.storeErrorCode(error.code, isWrite: isWrite), during: operation, store: store,
      message: message, underlying: error, isRetryable: SQLiteResultCode.isTransient(error.code), outcome: outcome)
  }
}
#endif
