import Foundation
public import Larder

/// The primary result codes of SQLite that a store tells apart, from [its list](https://sqlite.org/rescode.html).
///
/// They are not taken from the header of a library, because a program may bring its own.
public enum SQLiteResultCode: Int32 {
  case error = 1
  case permission = 3
  case abort = 4
  case busy = 5
  case locked = 6
  case noMemory = 7
  case readOnly = 8
  case interrupt = 9
  case ioError = 10
  case corrupt = 11
  case full = 13
  case cannotOpen = 14
  case schema = 17
  case tooBig = 18
  case constraint = 19
  case authorization = 23
  case notADatabase = 26

  /// `SQLITE_READONLY_DBMOVED`.
  private static let movedFile: Int32 = 8 | 4 << 8

  /// Returns the primary code of an extended one, if a store tells it from others.
  public init?(extended code: Int32) {
    self.init(rawValue: code & 0xFF)
  }

  /// Returns the code of the store error for a failed statement.
  ///
  /// ```swift
  /// let code = SQLiteResultCode.storeErrorCode(extendedCode, isWrite: true)
  /// throw StoreError(
  ///   code, during: .apply, store: "users", message: message, isRetryable: SQLiteResultCode.isTransient(extendedCode))
  /// ```
  ///
  /// - Parameters:
  ///   - code: The extended code.
  ///   - errorNumber: The system's reason, a value of `errno`, or 0 if it is not known. Defaults to 0.
  ///   - isWrite: A Boolean value that indicates whether a transaction that writes failed, after its tables were
  ///     checked.
  public static func storeErrorCode(_ code: Int32, errorNumber: Int32 = 0, isWrite: Bool) -> StoreError.Code {
    switch SQLiteResultCode(extended: code) {
    case .readOnly where code == movedFile: .conflict
    case .full: .full
    // A program has interrupted the statement, or has suspended the database.
    case .busy, .locked, .abort, .interrupt: .timedOut
    case .notADatabase: .unrecognizedFormat
    case .corrupt: .corrupted
    case .cannotOpen where outOfRoom.contains(errorNumber), .ioError where outOfRoom.contains(errorNumber): .full
    case .cannotOpen where errorNumber == 0 || [EACCES, EPERM, EROFS].contains(errorNumber): .notPermitted
    case .readOnly, .permission, .authorization, .constraint: .notPermitted
    case .tooBig: .valueTooLarge
    // The statements are Larder's own. A write is refused by a trigger or an index on an expression; a read fails if
    // another program has changed the table.
    case .error, .schema: isWrite ? .notPermitted : .conflict
    case .noMemory, .ioError, .cannotOpen, nil: .ioFailed
    }
  }

  /// Returns whether the same call may succeed later.
  ///
  /// - Parameters:
  ///   - code: The extended code.
  ///   - errorNumber: The system's reason, a value of `errno`, or 0 if it is not known. Defaults to 0.
  public static func isTransient(_ code: Int32, errorNumber: Int32 = 0) -> Bool {
    switch SQLiteResultCode(extended: code) {
    case .full, .busy, .locked, .abort, .interrupt, .noMemory: true
    case .ioError, .cannotOpen: [EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT].contains(errorNumber)
    default: false
    }
  }

  /// Returns whether a failed commit may have taken effect.
  ///
  /// If the system has no room for a page of the log, the record of the commit, which is its last page, was not written.
  ///
  /// - Parameters:
  ///   - code: The extended code.
  ///   - errorNumber: The system's reason, a value of `errno`, or 0 if it is not known.
  public static func leavesCommitInDoubt(_ code: Int32, errorNumber: Int32) -> Bool {
    SQLiteResultCode(extended: code) == .ioError
      && !(code == failedWrite && outOfRoom.contains(errorNumber))
  }

  /// `SQLITE_IOERR_WRITE`.
  private static let failedWrite: Int32 = 10 | 3 << 8

  /// The reasons of the system for which there is no room: the disk, a quota or the size of a file.
  private static var outOfRoom: [Int32] { [ENOSPC, EDQUOT, EFBIG] }
}
