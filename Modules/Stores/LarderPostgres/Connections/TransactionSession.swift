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
  private let configuration: SessionConfiguration

  private struct State {
    var failure: Failure?
    var hasEnded = false
    var hasRunSQL = false
    /// The user's settings of the planner after the latest SQL.
    var planning: [String]?
    var commitActions: [@Sendable () -> Void] = []
  }

  private let state = Locked(State())

  /// Creates the session of a transaction that a connection has begun.
  ///
  /// - Parameters:
  ///   - session: The session.
  ///   - backend: The connection.
  ///   - number: The number of the transaction, or `nil` if it only reads.
  ///   - configuration: The configuration of the session.
  init(
    _ session: Session, _ backend: Connection.Backend?, number: String?, _ configuration: SessionConfiguration
  ) {
    self.session = session
    self.configuration = configuration
    self.backend = backend
    self.number = number
  }

  /// Runs statements in one round trip.
  ///
  /// - Returns: The results, one for each statement.
  /// - Throws: ``StoreError``. The transaction is rolled back then.
  func run(_ statements: [Statement], for operation: StoreOperation, store: String) async throws -> [QueryResult] {
    try await response(to: statements, for: operation, store: store).results
  }

  private func response(
    to statements: [Statement], for operation: StoreOperation, store: String
  ) async throws -> Session.Response {
    let (failure, hasEnded) = state.withLock { ($0.failure, $0.hasEnded) }
    guard !hasEnded else {
      throw StoreError(.closed, during: operation, store: store, message: "the transaction has ended")
    }
    if let failure { throw storeError(failure.error, during: operation, store: store) }
    let response = await session.run(
      Session.Request(
        statements: statements, backend: backend, isCancellable: number == nil,
        // A call of a task that outlives the closure must not follow the end of the transaction.
        isAllowed: { [self] in !state.withLock { $0.hasEnded } }))
    guard let failure = response.failure else { return response }
    let found =
      switch failure {
      case .refused(let error): Failure(error: error, mustRepeat: error.mustRepeat)
      case .notSent(let error), .lost(let error): Failure(error: error, mustRepeat: true)
      case .timedOut:
        Failure(
          error: PostgresError(sqlState: "57014", message: "the server did not answer in time"), mustRepeat: false)
      }
    state.withLock { $0.failure = $0.failure ?? found }
    if found.error.isCancellation { try Task.checkCancellation() }
    throw storeError(found.error, during: operation, store: store)
  }

  /// Runs a statement of the user.
  ///
  /// - Throws: ``StoreError``, with `invalidArgument` if the statement has ended the transaction.
  func runSQL(_ statement: Statement, store: String) async throws -> QueryResult {
    let planning = state.withLock { state in
      state.hasRunSQL = true
      return state.planning
    }
    let first = configuration.userPlanning(planning)
    let check = number == nil ? [] : [TransactionStatus.number]
    let response = try await response(
      to: first + [statement] + check + [configuration.endOfUserPlanning], for: .write, store: store)
    let isSame =
      number == nil ? response.isInTransaction : response.results[first.count + 1].text(0, 0) == number
    guard isSame else {
      let error = PostgresError(
        sqlState: "2D000", message: "the SQL ended the transaction; its changes may be committed")
      state.withLock { $0.failure = $0.failure ?? Failure(error: error, mustRepeat: false) }
      throw storeError(error, during: .write, store: store)
    }
    if let settings = response.results.last {
      state.withLock { $0.planning = (0..<settings.columnCount / 2).map { settings.text(0, $0) ?? "" } }
    }
    return response.results[first.count]
  }

  /// Whether the transaction has run SQL of the user, which may have changed the session.
  var hasRunSQL: Bool { state.withLock { $0.hasRunSQL } }

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
