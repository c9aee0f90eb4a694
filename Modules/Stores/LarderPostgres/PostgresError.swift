#if Postgres
public import Larder

/// An error that a PostgreSQL server or its client library reported.
///
/// `StoreError.underlying` holds one of these if a store or a queue throws because of PostgreSQL.
///
/// ```swift
/// do {
///   try await database.write { try await $0.execute("INSERT INTO orders(id) VALUES($1)", ["17"]) }
/// } catch let error as StoreError {
///   if let cause = error.underlying as? PostgresError, cause.sqlState == "23505" { print("the order exists") }
/// }
/// ```
public struct PostgresError: RedactedError, Hashable {
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

  /// The meaning of a code.
  private struct Meaning {
    /// The code of the store error.
    let code: StoreError.Code
    /// A Boolean value that indicates whether the same call may succeed later.
    var isTransient = false
    /// A Boolean value that indicates whether nothing was changed, and the same transaction may succeed immediately.
    var mustRepeat = false
    /// A Boolean value that indicates whether the server has ended the connection.
    var endsConnection = false

    static let conflict = Meaning(code: .conflict, isTransient: true, mustRepeat: true)
    static let shutdown = Meaning(code: .ioFailed, isTransient: true, mustRepeat: true, endsConnection: true)
    static let lostConnection = Meaning(code: .ioFailed, isTransient: true, endsConnection: true)
    static let timedOut = Meaning(code: .timedOut, isTransient: true)
  }

  /// The meanings of codes, and of classes of codes, which are their first two characters.
  private static let meanings: [String: Meaning] = [
    // No answer.
    "": .lostConnection, "08": .lostConnection, "57": .lostConnection, "57P03": .lostConnection,
    "57P01": .shutdown, "57P02": .shutdown, "57P05": .shutdown,
    "40001": .conflict, "40P01": .conflict, "40": Meaning(code: .ioFailed, isTransient: true),
    "57014": .timedOut, "55P03": .timedOut, "25P03": .timedOut, "25P04": .timedOut,
    // A prepared statement is gone.
    "26000": Meaning(code: .ioFailed, mustRepeat: true),
    // A standby may become the primary.
    "25006": Meaning(code: .notPermitted, isTransient: true),
    "28": Meaning(code: .notPermitted), "42501": Meaning(code: .notPermitted),
    // A constraint or a trigger of the user refuses the change.
    "23": Meaning(code: .notPermitted), "44": Meaning(code: .notPermitted), "P0": Meaning(code: .notPermitted),
    "53100": Meaning(code: .full, isTransient: true),
    // Of memory, connections or locks.
    "53": Meaning(code: .ioFailed, isTransient: true),
    "54": Meaning(code: .valueTooLarge), "22": Meaning(code: .encodingFailed),
    "3D000": Meaning(code: .notFound), "XX001": Meaning(code: .corrupted), "XX002": Meaning(code: .corrupted),
    // A table or a column of an open store is missing or has another type.
    "42P01": Meaning(code: .conflict), "3F000": Meaning(code: .conflict), "42703": Meaning(code: .conflict),
    "42804": Meaning(code: .conflict), "42883": Meaning(code: .conflict), "42P10": Meaning(code: .conflict),
    // A statement after one that failed.
    "25P02": Meaning(code: .conflict),
    // The user's own SQL.
    "42601": Meaning(code: .invalidArgument), "2D000": Meaning(code: .invalidArgument),
    "08P01": Meaning(code: .invalidArgument, endsConnection: true), "0A000": Meaning(code: .unsupported),
  ]

  private var meaning: Meaning {
    PostgresError.meanings[sqlState] ?? PostgresError.meanings[String(sqlState.prefix(2))] ?? Meaning(code: .ioFailed)
  }

  /// The code of the store error.
  var storeErrorCode: StoreError.Code { meaning.code }

  /// A Boolean value that indicates whether the same call may succeed later.
  var isTransient: Bool { meaning.isTransient }

  /// A Boolean value that indicates whether the server has ended the connection.
  var endsConnection: Bool { meaning.endsConnection }

  /// A Boolean value that indicates whether a transaction that it refused may succeed if it is repeated.
  var mustRepeat: Bool { meaning.mustRepeat || concernsPreparation }

  /// The code of a transaction that must be repeated: nothing was changed.
  var isConflict: Bool { sqlState == "40001" || sqlState == "40P01" }

  /// A Boolean value that indicates whether the statement was cancelled, by its time limit or by its caller.
  var isCancellation: Bool { sqlState == "57014" }

  /// A Boolean value that indicates whether a prepared statement is gone or outdated, so it must be prepared again:
  /// nothing was changed.
  var concernsPreparation: Bool {
    sqlState == "26000" || sqlState == "0A000" && message.contains("cached plan")
  }

  /// The error of a request that was not answered within its time limit.
  static let late = PostgresError(sqlState: "57014", message: "the server did not answer within the time limit")

  /// The error of a request whose task was cancelled.
  static let cancellation = PostgresError(sqlState: "57014", message: "the task was cancelled")

  /// The error of a statement that a pooler has sent to another connection of the server, where nothing was run.
  static let exchangedConnection = PostgresError(
    sqlState: "0A000",
    message: "a pooler exchanges connections between transactions; use its mode \"session\", or connect to the server")
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
  ///   - outcome: The outcome. It says whether anything may have been changed. Defaults to `nothingChanged`.
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
