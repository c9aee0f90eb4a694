#if Postgres
import Larder

/// The session of a running transaction.
final class TransactionSession: Sendable {
  /// Why the transaction cannot be committed any more.
  struct Failure: Sendable {
    let error: PostgresError
    /// Whether the transaction may succeed if it is run again.
    let mustRepeat: Bool
  }

  private let session: Session
  private let backend: Connection.Backend?

  /// The number of the transaction, or `nil` if it only reads.
  private let number: String?
  private struct State {
    var failure: Failure?
    var hasEnded = false
    var mustDisconnect = false
    var commitActions: [@Sendable () -> Void] = []
  }

  private let state = Locked(State())

  /// Creates the session of a transaction that a connection has begun.
  ///
  /// - Parameters:
  ///   - session: The session.
  ///   - backend: The connection.
  ///   - number: The number of the transaction, or `nil` if it only reads.
  init(_ session: Session, _ backend: Connection.Backend?, number: String?) {
    self.session = session
    self.backend = backend
    self.number = number
  }

  /// Runs statements in one round trip.
  ///
  /// - Returns: The results, one for each statement.
  /// - Throws: ``StoreError``. The transaction is rolled back then.
  func run(_ statements: [Statement], for operation: StoreOperation, store: String) async throws -> [QueryResult] {
    let (failure, hasEnded) = state.withLock { ($0.failure, $0.hasEnded) }
    guard !hasEnded else {
      throw StoreError(.closed, during: operation, store: store, message: "the transaction has ended")
    }
    if let failure { throw storeError(failure.error, during: operation, store: store) }
    let response = await session.run(Session.Request(statements: statements, backend: backend))
    guard let failure = response.failure else { return response.results }
    let found =
      switch failure {
      case .refused(let error): Failure(error: error, mustRepeat: error.isConflict || error.concernsPreparation)
      case .notSent(let error), .lost(let error): Failure(error: error, mustRepeat: true)
      case .timedOut:
        Failure(
          error: PostgresError(sqlState: "57014", message: "the server did not answer in time"), mustRepeat: false)
      }
    state.withLock { $0.failure = $0.failure ?? found }
    throw storeError(found.error, during: operation, store: store)
  }

  /// Runs a statement of the user.
  ///
  /// - Throws: ``StoreError``, with `invalidArgument` if the statement has ended the transaction.
  func runSQL(_ statement: Statement, store: String) async throws -> QueryResult {
    // Not prepared, because the user's statement may drop prepared ones.
    let check = number == nil ? [] : [Statement(TransactionStatus.number.sql, [], isPrepared: false)]
    let results = try await run([statement] + check, for: .write, store: store)
    if !check.isEmpty, results[1].text(0, 0) != number {
      let error = PostgresError(
        sqlState: "2D000", message: "the SQL ended the transaction; its changes may be committed")
      state.withLock { $0.failure = $0.failure ?? Failure(error: error, mustRepeat: false) }
      throw storeError(error, during: .write, store: store)
    }
    // Later users of the connection must not find the user's settings.
    if ["SET", "RESET", "DISCARD"].contains(where: results[0].command.hasPrefix) {
      state.withLock { $0.mustDisconnect = true }
    }
    return results[0]
  }

  /// Ends the connection after the transaction, if the user has changed its settings.
  func disconnectIfNeeded() {
    if state.withLock({ $0.mustDisconnect }) { session.disconnect() }
  }

  /// Ends the transaction for its users.
  ///
  /// - Returns: The failure because of which it cannot be committed, or `nil`.
  func end() -> Failure? {
    state.withLock { state in
      state.hasEnded = true
      return state.failure
    }
  }

  /// Calls a closure once the transaction is committed, and never if it is rolled back.
  func afterCommit(_ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.commitActions.append(action) }
  }

  /// Calls the closures of ``afterCommit(_:)``.
  func runCommitActions() {
    let actions = state.withLock { state in
      defer { state.commitActions = [] }
      return state.commitActions
    }
    for action in actions { action() }
  }

  private func storeError(_ error: PostgresError, during operation: StoreOperation, store: String) -> StoreError {
    StoreError(error, during: operation, store: store, message: "the server refused a statement of the transaction")
  }
}
#endif
