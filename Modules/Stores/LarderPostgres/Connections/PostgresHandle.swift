#if Postgres
import Larder

/// A handle with which one object uses the sessions of a database, until the handle is closed.
///
/// A handle that depends on another is closed together with it. STUB: the lead is writing it.
final class PostgresHandle: Sendable {
  /// The information of the owner: a database, a store or a queue.
  let information: StoreInformation

  /// The name of the schema, quoted for SQL, such as `"public"`.
  let quotedSchema: String

  /// The time limit of each operation.
  let timeout: Duration

  /// Runs an operation for which `close` waits.
  func run<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result

  /// Runs a statement that only reads. It is repeated by itself if the connection is lost.
  ///
  /// - Throws: ``StoreError``; `CancellationError` if the task is cancelled before the statement is sent.
  func read(_ statement: Statement, for operation: StoreOperation) async throws -> QueryResult

  /// Runs statements as one transaction in one round trip: all take effect or none.
  ///
  /// Conflicts are repeated, and the outcome of a lost connection is found out, so that an error says `unknown` only if
  /// the server does not answer. It is not possible to wait for the result of one statement before the next.
  ///
  /// - Returns: A result for each statement.
  func write(_ statements: [Statement], for operation: StoreOperation) async throws -> [QueryResult]

  /// Runs a closure in a transaction on a session of its own (several round trips). The closure may run again.
  func transaction<Result: Sendable>(
    for operation: StoreOperation, first: [Statement] = [],
    _ body: @Sendable (_ transaction: TransactionSession, _ firstResults: [QueryResult]) async throws -> Result
  ) async throws -> Result
}

/// `transaction.run([Statement]) async throws -> [QueryResult]`
