#if Postgres
import Larder

/// The session of a running transaction.
final class TransactionSession: Sendable {
  /// The number of noted changes above which they are combined, which no usual transaction reaches.
  private static let maximumChangeCount = 1000

  private let session: Session
  /// The number of the transaction, or `nil` if it only reads.
  private let number: String?
  private let feed: ChangeFeed

  private struct State {
    /// Why the transaction cannot be committed any more.
    var failure: FailedAttempt?
    var hasEnded = false
    /// The user's settings of the planner after the latest SQL.
    var planning: [String]?
    var commitActions: [@Sendable () -> Void] = []
    var changes: [CommittedChanges] = []
    /// The number of the commit.
    ///
    /// It delays the reports of the feed until it ends.
    var commit: UInt64?
  }

  private let state = Locked(State())

  /// Creates the session of a transaction that a connection has begun.
  ///
  /// - Parameters:
  ///   - session: The session.
  ///   - number: The number of the transaction, or `nil` if it only reads.
  ///   - feed: The changes of the database.
  init(_ session: Session, number: String?, feed: ChangeFeed) {
    self.session = session
    self.number = number
    self.feed = feed
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
  ) async throws -> Response {
    let (failure, hasEnded) = state.withLock { ($0.failure, $0.hasEnded) }
    guard !hasEnded else {
      throw StoreError(.closed, during: operation, store: store, message: "the transaction has ended")
    }
    if let failure { throw storeError(failure.error, during: operation, store: store) }
    let response = await session.run(
      Request(
        statements: statements, isCancellable: number == nil,
        // A call of a task that outlives the closure must not follow the end of the transaction.
        isAllowed: { [self] in !state.withLock { $0.hasEnded } }))
    guard let failure = response.failure else { return response }
    let found =
      switch failure {
      case .refused(let error): FailedAttempt(error)
      case .notSent(let error), .lost(let error): FailedAttempt(error, mustRepeat: true)
      case .timedOut: FailedAttempt(.late)
      }
    state.withLock { $0.failure = $0.failure ?? found }
    if found.error.isCancellation { try Task.checkCancellation() }
    throw storeError(found.error, during: operation, store: store)
  }

  /// Runs a statement of the user.
  ///
  /// - Throws: ``StoreError``, with `invalidArgument` if the statement has ended the transaction.
  func runSQL(_ statement: Statement, store: String) async throws -> QueryResult {
    session.withState { $0.mustReset = true }
    let configuration = session.configuration
    let first = configuration.userPlanning(state.withLock { $0.planning })
    let check = number == nil ? [] : [TransactionStatus.number]
    let response = try await response(
      to: first + [statement] + check + [configuration.endOfUserPlanning], for: .write, store: store)
    let isSame =
      number == nil ? response.isInTransaction : response.results[first.count + 1].text(0, 0) == number
    guard isSame else {
      let error = PostgresError(
        sqlState: "2D000", message: "the SQL ended the transaction; its changes may be committed")
      state.withLock { $0.failure = $0.failure ?? FailedAttempt(error) }
      throw storeError(error, during: .write, store: store)
    }
    if let settings = response.results.last {
      state.withLock { $0.planning = (0..<settings.columnCount / 2).map { settings.text(0, $0) ?? "" } }
    }
    return response.results[first.count]
  }

  /// Ends the transaction for its users.
  ///
  /// - Returns: The failure because of which it cannot be committed, or `nil`.
  func end() -> FailedAttempt? {
    state.withLock { state in
      state.hasEnded = true
      return state.failure
    }
  }

  /// Calls a closure once the transaction is committed, and never if it is rolled back.
  func afterCommit(_ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.commitActions.append(action) }
  }

  /// Notes changes of a store, which are reported when the transaction is committed, or may be.
  ///
  /// Many changes become one of each store, so a long transaction does not keep all its keys.
  func note(_ changes: CommittedChanges) {
    state.withLock { state in
      state.changes.append(changes)
      guard state.changes.count > TransactionSession.maximumChangeCount else { return }
      state.changes = Dictionary(grouping: state.changes, by: \.store).map { store, changes in
        var all = BoundedChanges()
        for change in changes.flatMap({ $0.changes().changes }) { all.append(change) }
        return CommittedChanges(store: store, isRecorded: changes.contains { $0.isRecorded }) { [all] in all }
      }
    }
  }

  /// Notes that the commit begins, if the feed records its changes, until ``endCommit()``.
  func beginCommit() {
    guard state.withLock({ $0.changes.contains { $0.isRecorded } }) else { return }
    let commit = feed.beginCommit()
    state.withLock { $0.commit = commit }
  }

  /// Notes that the commit has been reported, or did not happen.
  func endCommit() {
    let commit = state.withLock { $0.commit.take() }
    if let commit { feed.endCommit(commit) }
  }

  /// Reports the changes of ``note(_:)``, and ends the commit.
  ///
  /// - Parameter areCommitted: A Boolean value that indicates whether the outcome is known.
  func reportChanges(areCommitted: Bool) {
    let changes = state.withLock { state in
      defer { state.changes = [] }
      return state.changes
    }
    if !changes.isEmpty { feed.noteCommit(changes, isCertain: areCommitted) }
    endCommit()
  }

  /// Calls the closures of ``afterCommit(_:)``, and reports the changes.
  func runCommitActions() {
    reportChanges(areCommitted: true)
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

/// How a transaction ends.
struct TransactionEnd<Result: Sendable>: Sendable {
  var result: Result

  /// The statements that are sent together with the commit.
  var statements: [Statement] = []

  /// A Boolean value that indicates whether anything is to be committed.
  var commits = true
}

/// Why an attempt to do something on a server has changed nothing.
struct FailedAttempt: Error {
  let error: PostgresError

  /// A Boolean value that indicates whether the same attempt may succeed if it is made again.
  let mustRepeat: Bool

  /// - Parameter mustRepeat: A Boolean value that indicates whether to make the attempt again. Defaults to what the
  ///   error says.
  init(_ error: PostgresError, mustRepeat: Bool? = nil) {
    self.error = error
    self.mustRepeat = mustRepeat ?? error.mustRepeat
  }
}

extension SessionConfiguration {
  /// Returns statements that let the planner work as the user wants it, before SQL of the user in a transaction.
  ///
  /// - Parameter values: The values that ``endOfUserPlanning`` has found, or `nil` for those of the role and the database.
  func userPlanning(_ values: [String]?) -> [Statement] {
    guard let values else {
      return planning.map { .command("SET LOCAL \($0.name) TO DEFAULT") }
    }
    let settings = planning.enumerated().map { "set_config('\($1.name)', $\($0 + 1), true)" }
    return [Statement("SELECT \(settings.joined(separator: ", "))", values.map { .inferred($0) }, isPrepared: false)]
  }

  /// A statement that returns the user's settings, which the same transaction may have changed, and restores Larder's.
  var endOfUserPlanning: Statement {
    let current = planning.map { "current_setting('\($0.name)')" }
    let own = planning.map { "set_config('\($0.name)', '\($0.value)', true)" }
    return .command("SELECT \((current + own).joined(separator: ", "))")
  }
}
#endif
