#if Postgres
public import Larder

/// An error that a PostgreSQL server or its client library reported.
///
/// `StoreError.underlying` holds one of these if a store or a queue throws because of PostgreSQL.
public struct PostgresError: ValueFreeError, Hashable {
  /// The code of five characters, which [the list of PostgreSQL](https://www.postgresql.org/docs/current/errcodes-appendix.html)
  /// explains, or an empty string if the server did not answer.
  public let sqlState: String

  /// The first line of the message, without the details, in which the server puts keys and values.
  public let message: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - sqlState: The code of five characters, or an empty string.
  ///   - message: The message.
  public init(sqlState: String, message: String) {
    self.sqlState = sqlState
    // The messages of this class quote the value that is wrong.
    self.message = sqlState.hasPrefix("22") ? "a value is invalid" : message
  }

  /// The code of a transaction that must be repeated: nothing was changed.
  var isConflict: Bool { sqlState == "40001" || sqlState == "40P01" }

  /// Whether the statement was cancelled, by its time limit or by its caller.
  var isCancellation: Bool { sqlState == "57014" }

  /// Whether a prepared statement is gone or outdated, so that it must be prepared again: nothing was changed.
  var concernsPreparation: Bool {
    sqlState == "26000" || sqlState == "0A000" && message.contains("cached plan")
  }

  /// Whether the server has ended the connection.
  var endsConnection: Bool { ["", "57", "08"].contains(sqlState.prefix(2)) && sqlState != "57014" }

  /// Whether a transaction that it refused may succeed if it is repeated.
  var mustRepeat: Bool { isConflict || concernsPreparation || ["57P01", "57P02", "57P05"].contains(sqlState) }

  /// The error of a statement that a pooler has sent to another connection of the server, where nothing was run.
  static let exchangedConnection = PostgresError(
    sqlState: "0A000",
    message: "a pooler exchanges connections between transactions; use its mode \"session\", or connect to the server")

  /// The code of the store error.
  var storeErrorCode: StoreError.Code {
    switch sqlState {
    case "53100": .full
    case "", "57P01", "57P02", "57P03", "57P05": .ioFailed
    case "57014", "55P03", "25P03", "25P04": .timedOut
    case "42501", "25006": .notPermitted
    case "3D000": .notFound
    case "XX001", "XX002": .corrupted
    // A table or a column of an open store is missing or has another type.
    case "42P01", "3F000", "42703", "42804", "42883", "42P10": .conflict
    case "40001", "40P01", "25P02": .conflict
    // The user's own SQL.
    case "42601", "08P01", "2D000": .invalidArgument
    case "0A000": .unsupported
    default:
      switch sqlState.prefix(2) {
      case "28": .notPermitted
      // A constraint or a trigger of the user refuses the change.
      case "23", "44", "P0": .notPermitted
      case "54": .valueTooLarge
      case "22": .encodingFailed
      // Of memory, connections and locks; space on disk is above.
      case "08", "53", "57", "58": .ioFailed
      default: .ioFailed
      }
    }
  }

  /// Whether the same call may succeed later.
  var isTransient: Bool {
    switch sqlState {
    case "", "57014", "55P03", "25P03", "25P04", "25006": true
    case "08P01": false
    default: ["08", "40", "53", "57"].contains(sqlState.prefix(2))
    }
  }
}

extension PostgresError: CustomStringConvertible {
  /// The message, and the code if there is one.
  public var description: String { sqlState.isEmpty ? message : "\(message) (\(sqlState))" }
}

extension StoreError {
  /// Creates a store error from an error of PostgreSQL.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - operation: The operation of the store.
  ///   - store: The name of the store.
  ///   - message: A message that describes the failure. The description adds that of PostgreSQL.
  ///   - outcome: Whether anything may have been changed. Defaults to `nothingChanged`.
  init(
    _ error: PostgresError, during operation: StoreOperation, store: String, message: String,
    outcome: Outcome = .nothingChanged
  ) {
    self.init(
      error.storeErrorCode, during: operation, store: store, message: message, underlying: error,
      isRetryable: error.isTransient, outcome: outcome)
  }
}
#endif
