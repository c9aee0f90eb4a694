#if SQLite
import CSQLite
public import Larder
import LarderFiles

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

extension SQLiteError {
  /// `SQLITE_READONLY_DBMOVED`, a macro that Swift does not import.
  private static let movedFile = SQLITE_READONLY | 4 << 8

  /// Returns the code of the store error that represents this error.
  ///
  /// - Parameter isWrite: Whether a transaction that writes failed, after its tables were checked.
  fileprivate func storeErrorCode(isWrite: Bool) -> StoreError.Code {
    switch primaryCode {
    case _ where code == SQLiteError.movedFile: .conflict
    case SQLITE_FULL: .full
    case SQLITE_BUSY, SQLITE_LOCKED: .timedOut
    case SQLITE_NOTADB: .unrecognizedFormat
    case SQLITE_CORRUPT: .corrupted
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH, SQLITE_CONSTRAINT, SQLITE_CANTOPEN: .notPermitted
    case SQLITE_TOOBIG: .valueTooLarge
    // The statements are Larder's own. A write is refused by a trigger or an index on an expression; a read fails if
    // another program has changed the table.
    case SQLITE_ERROR, SQLITE_SCHEMA: isWrite ? .notPermitted : .conflict
    default: .ioFailed
    }
  }

  /// Whether the same call may succeed later.
  fileprivate var isTransient: Bool {
    [SQLITE_FULL, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOMEM].contains(primaryCode)
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
  ///   - outcome: Whether anything may have been changed. Defaults to `nothingChanged`.
  ///   - isWrite: Whether a transaction that writes failed. Defaults to `false`.
  init(
    _ error: SQLiteError, during operation: StoreOperation, store: String, message: String,
    outcome: Outcome = .nothingChanged, isWrite: Bool = false
  ) {
    self.init(
      error.storeErrorCode(isWrite: isWrite), during: operation, store: store, message: message,
      underlying: error, isRetryable: error.isTransient, outcome: outcome)
  }
}
#endif
