#if Postgres
import Larder
import Synchronization

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
  private struct State {
    var failure: Failure?
    var hasEnded = false
    var commitActions: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())

  /// Creates the session of a transaction that a connection has begun.
  init(_ session: Session, _ backend: Connection.Backend?) {
    self.session = session
    self.backend = backend
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
    let landing = await session.run(Session.Flight(statements: statements, backend: backend))
    guard let failure = landing.failure else { return landing.results }
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
