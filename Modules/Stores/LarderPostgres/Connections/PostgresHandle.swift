#if Postgres
import Larder

/// A handle with which one object uses the sessions of a database, until the handle is closed.
///
/// A handle that depends on another is closed together with it.
final class PostgresHandle: Sendable {
  /// The information of the owner: a database, a store or a queue.
  let information: StoreInformation

  let pool: SessionPool

  /// The notifications of the database.
  let listener: NotificationListener

  /// The changes of the stores of the database.
  let feed: ChangeFeed

  /// The observers of the owner, if it is a store.
  private let observers = StoreObservers()

  private let root: PostgresHandle?

  /// The running operations of the owner; a root also counts those of the handles that depend on it.
  private let operations = RunningOperations()

  /// A Boolean value that indicates whether the handle is closed and its operations have ended.
  private let hasClosed = Locked(false)

  /// Creates a handle.
  ///
  /// - Parameters:
  ///   - pool: The sessions.
  ///   - root: The handle that the new one depends on, or `nil` for a root.
  ///   - information: The information of the owner.
  init(_ pool: SessionPool, dependingOn root: PostgresHandle? = nil, information: StoreInformation) {
    self.pool = pool
    self.root = root
    let listener = root?.listener ?? NotificationListener(pool)
    self.listener = listener
    feed = root?.feed ?? ChangeFeed(pool, listener)
    self.information = information
  }

  deinit {
    feed.remove(ObjectIdentifier(self))
  }

  /// The name of the owner in errors.
  var name: String { information.name }

  /// The name of the schema for SQL.
  var quotedSchema: String { pool.configuration.quotedSchema }

  /// The time limit of each operation.
  var timeout: Duration { pool.configuration.timeout }

  /// Throws `closed` if the handle is closed.
  func checkOpen(for operation: StoreOperation) throws {
    guard !operations.isClosing, root?.operations.isClosing != true else {
      throw information.closedError(for: operation)
    }
  }

  /// Runs an operation for which `close` waits.
  ///
  /// - Throws: ``StoreError`` with `closed`; the error that `body` throws.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    guard root?.operations.begin() ?? true else { throw information.closedError(for: operation) }
    defer { root?.operations.end() }
    return try await operations.run(operation, of: information, body)
  }

  /// Waits for running operations, and ends the sessions if the handle is a root.
  func close() async {
    await operations.close()
    hasClosed.withLock { $0 = true }
    endObservations()
    guard root == nil else { return }
    feed.close()
    // Others may wait for what was just committed.
    await listener.finish()
    pool.close()
  }

  // MARK: Observing

  /// Observes the store of the owner.
  ///
  /// - Parameters:
  ///   - range: The range of keys.
  ///   - table: The table of the store.
  ///   - observer: A closure that receives the events.
  func observe(
    _ range: KeyRange, of table: StoreTable, _ observer: @escaping @Sendable (StoreEvent) -> Void
  ) -> StoreObservation {
    let currentLag: @Sendable () -> Duration = { [weak feed] in feed?.lag ?? .seconds(Int64.max) }
    let observation = observers.add(range, lag: table.reportsChanges ? currentLag : nil, observer)
    feed.add(table.name, self, root: root ?? self, observers, isRecorded: table.reportsChanges)
    // The handle may have been closed before it was added.
    if hasClosed.withLock(\.self) || root?.hasClosed.withLock(\.self) == true { endObservations() }
    return observation
  }

  private func endObservations() {
    feed.remove(ObjectIdentifier(self))
    observers.close()
  }

  // MARK: Requests

  /// Runs a statement that only reads, again if the connection is lost.
  ///
  /// - Throws: ``StoreError``; `CancellationError` if the task is cancelled, also while the statement runs.
  func read(_ statement: Statement, for operation: StoreOperation) async throws -> QueryResult {
    try Task.checkCancellation()
    return try await repeating(operation) { session, deadline in
      let request = Request(statements: [statement], deadline: deadline, isCancellable: true)
      return .finished(try await answer(to: request, on: session, during: operation).results[0])
    }
  }

  /// Runs statements as one transaction in one round trip: all take effect, or nothing does.
  ///
  /// A transaction that meets a conflict is repeated. If the connection is lost during the commit, the server is asked what
  /// became of the transaction.
  ///
  /// - Parameters:
  ///   - statements: The statements.
  ///   - isReadCommitted: A Boolean value that indicates whether the transaction is read committed, whatever the
  ///     isolation of the database. Defaults to `false`.
  ///   - usesResults: A Boolean value that indicates whether the caller needs the results. Defaults to `true`.
  ///   - changes: The changes to report once they are committed, or may be. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Returns: The results, one for each statement, or fewer if the caller does not need them.
  /// - Throws: ``StoreError``, with the outcome `unknown` only if the server does not tell it; `CancellationError` if the
  ///   task is cancelled before the statements are sent.
  @discardableResult
  func write(
    _ statements: [Statement], isReadCommitted: Bool = false, usesResults: Bool = true,
    reporting changes: CommittedChanges? = nil, for operation: StoreOperation
  ) async throws -> [QueryResult] {
    let commit = changes?.isRecorded == true ? feed.beginCommit() : nil
    defer { if let commit { feed.endCommit(commit) } }
    do {
      let results = try await written(
        statements, isReadCommitted: isReadCommitted, usesResults: usesResults, for: operation)
      if let changes { feed.noteCommit([changes], isCertain: true) }
      return results
    } catch let error as StoreError where error.outcome == .unknown {
      if let changes { feed.noteCommit([changes], isCertain: false) }
      throw error
    }
  }

  /// Runs statements as one transaction; see ``write(_:isReadCommitted:usesResults:reporting:for:)``.
  private func written(
    _ statements: [Statement], isReadCommitted: Bool, usesResults: Bool, for operation: StoreOperation
  ) async throws -> [QueryResult] {
    try await repeating(operation) { session, deadline in
      let first =
        (isReadCommitted ? [.command("BEGIN ISOLATION LEVEL READ COMMITTED")] : [])
        + [TransactionStatus.beginning(limit: ContinuousClock.now.duration(to: deadline))]
      let request = Request(
        statements: first + statements + (isReadCommitted ? [Statement("COMMIT")] : []),
        endsWithCommit: isReadCommitted,
        // The number arrives even if the connection is lost while a statement waits for a lock, and the results even if it is
        // lost during the commit.
        flushes: [first.count] + (usesResults ? [first.count + statements.count] : []), deadline: deadline)
      let response = try await answer(to: request, on: session, during: operation, commits: true)
      let results = Array(response.results.dropFirst(first.count).prefix(statements.count))
      let number = response.results.count < first.count ? nil : response.results[first.count - 1].text(0, 0)
      guard case .lost(let error) = response.failure else { return .finished(results) }
      // A commit whose results are lost is as unknown to the caller.
      let known = results.count == statements.count || !usesResults ? results : nil
      return .lost(known, nil, number, session.facts, error)
    }
  }

  /// Runs a closure in a transaction on a session of its own.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - isReading: A Boolean value that indicates whether the transaction only reads. Defaults to `false`.
  ///   - first: The statements that are sent together with it.
  ///   - body: A closure that receives the results of the first statements. It runs again if the transaction has to be
  ///     repeated. It returns its result and the statements to send together with the commit.
  /// - Throws: ``StoreError``; the error that `body` throws, with nothing changed; `CancellationError` if the task is
  ///   cancelled before the transaction begins.
  func transaction<Result: Sendable>(
    for operation: StoreOperation, isReading: Bool = false, first: [Statement] = [],
    _ body: (_ transaction: TransactionSession, _ results: [QueryResult]) async throws -> TransactionEnd<Result>
  ) async throws -> Result {
    try await repeating(operation) { session, deadline in
      let begin = [
        isReading ? snapshotBeginning : .command("BEGIN"),
        // The first statement of a transaction that reads takes the snapshot, after which it cannot be made to write.
        isReading ? Statement("SELECT 1") : TransactionStatus.beginning(limit: timeout),
      ]
      let beginning = Request(statements: begin + first, deadline: deadline, isCancellable: isReading)
      let results = try await answer(to: beginning, on: session, during: operation).results
      let number = isReading ? nil : results[1].text(0, 0)
      let transaction = TransactionSession(session, number: number, feed: feed)
      let end: Swift.Result<TransactionEnd<Result>, any Error>
      do {
        end = .success(try await body(transaction, Array(results.suffix(first.count))))
      } catch {
        end = .failure(error)
      }
      // First, so that a call of another task is not sent behind the rollback.
      let failure = transaction.end()
      guard failure == nil, case .success(let success) = end, success.commits, let number else {
        await rollBack(session)
        if failure?.mustRepeat != true { _ = try end.get() }
        // A closure cannot continue after a failed statement, even if it caught the error.
        if let failure { throw failure }
        return .finished(try end.get().result)
      }
      let commit = Request(statements: success.statements + [Statement("COMMIT")], endsWithCommit: true)
      transaction.beginCommit()
      let response: Response
      do {
        response = try await answer(to: commit, on: session, during: operation, commits: true)
      } catch {
        if (error as? StoreError)?.outcome == .unknown { transaction.reportChanges(areCommitted: false) }
        transaction.endCommit()
        throw error
      }
      if case .lost(let error) = response.failure {
        return .lost(success.result, transaction, number, session.facts, error)
      }
      // The server answers the commit of a transaction that has failed with a rollback.
      guard response.results.last?.command == "COMMIT" else {
        transaction.endCommit()
        throw FailedAttempt(PostgresError(sqlState: "25P02", message: "a statement of the transaction failed"))
      }
      transaction.runCommitActions()
      return .finished(success.result)
    }
  }

  /// Begins a transaction that reads one snapshot.
  private var snapshotBeginning: Statement {
    let isSerializable = pool.configuration.isolation == .serializable
    return .command("BEGIN ISOLATION LEVEL \(isSerializable ? "SERIALIZABLE" : "REPEATABLE READ") READ ONLY")
  }

  /// Runs a request of an attempt.
  ///
  /// - Returns: The answer. Its only failure is that the connection was lost during a commit.
  /// - Throws: ``FailedAttempt``; ``StoreError`` with `timedOut`; `CancellationError` if the task is cancelled while it reads.
  private func answer(
    to request: Request, on session: Session, during operation: StoreOperation, commits: Bool = false
  ) async throws -> Response {
    let response = await session.run(request)
    switch response.failure {
    case nil: return response
    case .refused(let error), .notSent(let error):
      if response.isInTransaction { await rollBack(session) }
      if request.isCancellable, error.isCancellation { try Task.checkCancellation() }
      // Without a code, the connection was lost before anything was sent.
      throw FailedAttempt(error, mustRepeat: error.mustRepeat || error.sqlState.isEmpty)
    case .lost(let error):
      guard commits else { throw FailedAttempt(error, mustRepeat: true) }
      return response
    case .timedOut:
      TransactionStatus.endLater(session.facts, in: pool)
      if request.isCancellable { try Task.checkCancellation() }
      throw StoreError(
        .timedOut, during: operation, store: name, message: "the server did not answer within \(timeout)",
        isRetryable: true, outcome: commits ? .unknown : .nothingChanged)
    }
  }

  private func rollBack(_ session: Session) async {
    let response = await session.run(Request(statements: [.command("ROLLBACK")]))
    // The server rolls back when the connection ends.
    if case .refused(let error) = response.failure { session.close(because: error) }
  }

  // MARK: Attempts

  /// The outcome of one attempt that has not failed.
  private enum Attempt<Result> {
    case finished(Result)
    /// The connection was lost during the commit, after which the result would be returned, unless it was lost as well.
    case lost(Result?, TransactionSession?, _ number: String?, Session.Facts, PostgresError)
  }

  /// The number of attempts before an operation gives up.
  private static var attemptLimit: Int { 20 }

  /// Runs attempts, each with a session of its own, again if one changed nothing because of others, or because the
  /// connection was lost.
  private func repeating<Result>(
    _ operation: StoreOperation,
    _ attempt: (_ session: Session, _ deadline: ContinuousClock.Instant) async throws -> Attempt<Result>
  ) async throws -> Result {
    let deadline = ContinuousClock.now + timeout
    var number = 1
    while true {
      let failure: PostgresError
      do {
        let end = try await pool.withSession(for: ObjectIdentifier(self), until: deadline) {
          try await attempt($0, deadline)
        }
        switch end {
        case .finished(let result): return result
        case .lost(let result, let transaction, let number, let backend, let error):
          switch await TransactionStatus.find(number, of: backend, in: pool, within: timeout) {
          case .aborted:
            transaction?.endCommit()
            failure = error
          case .committed:
            transaction?.runCommitActions()
            guard let result else { fallthrough }
            return result
          case .unknown:
            transaction?.reportChanges(areCommitted: false)
            throw StoreError(
              .ioFailed, during: operation, store: name, message: "the connection was lost during the commit",
              underlying: error, isRetryable: true, outcome: .unknown)
          }
        }
      } catch let failed as FailedAttempt {
        guard failed.mustRepeat else {
          throw StoreError(
            failed.error, during: operation, store: name,
            message: failed.error.sqlState.isEmpty ? "no server can be reached" : "the server refused the operation")
        }
        failure = failed.error
      } catch is SessionPool.PoolTimeout {
        throw StoreError(
          .timedOut, during: operation, store: name,
          message: "no connection of the pool became free within \(timeout); allow more connections",
          isRetryable: true)
      }
      guard number < PostgresHandle.attemptLimit, ContinuousClock.now < deadline else {
        throw StoreError(
          failure.isConflict ? .conflict : .ioFailed, during: operation, store: name,
          message: "gave up after \(number) attempts, the last of which the server or the connection ended",
          underlying: failure, isRetryable: true)
      }
      pool.noteRepeat(because: failure)
      // A random pause, so that transactions that were in conflict are not in conflict again. Its limit grows beyond the
      // duration of transactions on a busy server.
      try await Task.sleep(for: .microseconds(Int.random(in: 0...(1000 << min(number, 8)))))
      number += 1
    }
  }
}
#endif
