#if Postgres
import Larder

/// A handle with which one object uses the sessions of a database, until the handle is closed.
///
/// A handle that depends on another is closed together with it.
final class PostgresHandle: Sendable {
  /// The information of the owner: a database, a store or a queue.
  let information: StoreInformation

  let pool: SessionPool

  private let root: PostgresHandle?

  /// The running operations of the owner; a root also counts those of the handles that depend on it.
  private let operations = RunningOperations()

  /// Creates a handle.
  ///
  /// - Parameters:
  ///   - pool: The sessions.
  ///   - root: The handle that the new one depends on, or `nil` for a root.
  ///   - information: The information of the owner.
  init(_ pool: SessionPool, dependingOn root: PostgresHandle? = nil, information: StoreInformation) {
    self.pool = pool
    self.root = root
    self.information = information
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
  func run<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    guard root?.operations.begin() ?? true else { throw information.closedError(for: operation) }
    defer { root?.operations.end() }
    return try await operations.run(operation, of: information, body)
  }

  /// Waits for running operations, and ends the sessions if the handle is a root.
  func close() async {
    await operations.close()
    guard root == nil else { return }
    // Others may wait for what was just committed.
    await pool.listener.finish()
    pool.close()
  }

  // MARK: Notifications

  /// Calls a closure after each notification of a channel; see ``NotificationListener/observe(_:_:)``.
  func listen(_ channel: String, _ body: @escaping @Sendable () -> Void) -> StoreObservation {
    pool.listener.observe(channel, body)
  }

  /// Notifies those who listen to a channel; see ``NotificationListener/notify(_:)``.
  func notify(_ channel: String) {
    pool.listener.notify(channel)
  }

  // MARK: Requests

  /// Runs a statement that only reads, again if the connection is lost.
  ///
  /// - Throws: ``StoreError``; `CancellationError` if the task is cancelled, also while the statement runs.
  func read(_ statement: Statement, for operation: StoreOperation) async throws -> QueryResult {
    try Task.checkCancellation()
    return try await repeating(operation) { session, deadline in
      let request = Session.Request(statements: [statement], deadline: deadline, isCancellable: true)
      let response = await session.run(request)
      switch response.failure {
      case nil: return .finished(response.results[0])
      case .refused(let error):
        if error.isCancellation { try Task.checkCancellation() }
        return .failed(error)
      case .notSent(let error): return .failed(error)
      case .lost(let error): return .mustRepeat(error)
      case .timedOut:
        try Task.checkCancellation()
        throw timeoutError(during: operation)
      }
    }
  }

  /// Runs statements as one transaction in one round trip: all take effect or none.
  ///
  /// A transaction that meets a conflict is repeated. If the connection is lost during the commit, the server is asked what
  /// became of the transaction.
  ///
  /// - Parameters:
  ///   - statements: The statements.
  ///   - isReadCommitted: Whether the transaction is read committed, whatever the isolation of the database. Defaults to
  ///     `false`.
  ///   - usesResults: Whether the caller needs the results. Defaults to `true`.
  ///   - operation: The operation, for errors.
  /// - Returns: The results, one for each statement, or fewer if the caller does not need them.
  /// - Throws: ``StoreError``, with the outcome `unknown` only if the server does not tell it; `CancellationError` if the
  ///   task is cancelled before the statements are sent.
  @discardableResult
  func write(
    _ statements: [Statement], isReadCommitted: Bool = false, usesResults: Bool = true, for operation: StoreOperation
  ) async throws -> [QueryResult] {
    try await repeating(operation) { session, deadline in
      let number = TransactionStatus.beginning(limit: ContinuousClock.now.duration(to: deadline))
      let request = Session.Request(
        beginning: isReadCommitted ? Statement("BEGIN ISOLATION LEVEL READ COMMITTED") : nil,
        statements: [number] + statements, ending: isReadCommitted ? Statement("COMMIT") : nil,
        // The number arrives even if the connection is lost while a statement waits for a lock, and the results even if it is
        // lost during the commit.
        flushes: [1] + (usesResults ? [1 + statements.count] : []), deadline: deadline)
      let response = await session.run(request)
      let results = Array(response.results.dropFirst().prefix(statements.count))
      switch response.failure {
      case nil: return .finished(results)
      case .refused(let error):
        if isReadCommitted { await rollBack(response.backend, on: session) }
        return .failed(error)
      case .notSent(let error): return .failed(error)
      case .timedOut:
        endLater(response.backend)
        throw timeoutError(during: operation, outcome: .unknown)
      case .lost(let error):
        guard let number = response.results.first?.text(0, 0) else {
          endLater(response.backend)
          throw unknownOutcome(error, during: operation)
        }
        // A commit whose results are lost is as unknown to the caller.
        let known = results.count == statements.count || !usesResults ? results : nil
        return try await found(known, number, response.backend, error, on: session, during: operation)
      }
    }
  }

  /// Runs a closure in a transaction on a session of its own.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - isReading: Whether the transaction only reads. Defaults to `false`.
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
      let response = await session.run(
        Session.Request(
          beginning: isReading ? snapshotBeginning : Statement("BEGIN"),
          // The first statement of a transaction that reads takes the snapshot, after which it cannot be made to write.
          statements: [isReading ? Statement("SELECT 1") : TransactionStatus.beginning(limit: timeout)] + first,
          deadline: deadline, isCancellable: isReading))
      switch response.failure {
      case nil: break
      case .refused(let error):
        await rollBack(response.backend, on: session)
        return .failed(error)
      case .notSent(let error): return .failed(error)
      case .lost(let error): return .mustRepeat(error)
      case .timedOut:
        endLater(response.backend)
        try Task.checkCancellation()
        throw timeoutError(during: operation)
      }
      let number = isReading ? nil : response.results[0].text(0, 0)
      let transaction = TransactionSession(session, response.backend, number: number, pool.configuration)
      let end: TransactionEnd<Result>
      do {
        end = try await body(transaction, Array(response.results.suffix(first.count)))
      } catch {
        // First, so that a call of another task is not sent behind the rollback.
        let failure = transaction.end()
        await rollBack(response.backend, on: session, resets: transaction.hasRunSQL)
        if let failure, failure.mustRepeat { return .mustRepeat(failure.error) }
        throw error
      }
      // A closure cannot continue after a failed statement, even if it caught the error.
      if let failure = transaction.end() {
        await rollBack(response.backend, on: session, resets: transaction.hasRunSQL)
        return failure.mustRepeat ? .mustRepeat(failure.error) : .failed(failure.error)
      }
      let finished = try await finish(
        end, number, response.backend, on: session, resets: transaction.hasRunSQL, during: operation)
      if case .finished = finished, end.commits { transaction.runCommitActions() }
      return finished
    }
  }

  /// Begins a transaction that reads one snapshot.
  private var snapshotBeginning: Statement {
    let isSerializable = pool.configuration.isolation == .serializable
    return Statement("BEGIN ISOLATION LEVEL \(isSerializable ? "SERIALIZABLE" : "REPEATABLE READ") READ ONLY")
  }

  /// Commits a transaction, or rolls it back if it has nothing to commit.
  private func finish<Result>(
    _ end: TransactionEnd<Result>, _ number: String?, _ backend: Connection.Backend?, on session: Session,
    resets: Bool, during operation: StoreOperation
  ) async throws -> Attempt<Result> {
    guard end.commits, let number else {
      await rollBack(backend, on: session, resets: resets)
      return .finished(end.result)
    }
    let request = Session.Request(
      statements: end.statements, ending: Statement("COMMIT"), backend: backend, resets: resets)
    let response = await session.run(request)
    switch response.failure {
    // The server answers the commit of a transaction that has failed with a rollback.
    case nil where response.results.last?.command != "COMMIT":
      return .failed(PostgresError(sqlState: "25P02", message: "a statement of the transaction failed"))
    case nil: return .finished(end.result)
    case .refused(let error):
      await rollBack(backend, on: session, resets: resets)
      return .failed(error)
    case .notSent(let error): return .mustRepeat(error)
    case .timedOut:
      endLater(backend)
      throw timeoutError(during: operation, outcome: .unknown)
    case .lost(let error):
      return try await found(end.result, number, backend, error, on: session, during: operation)
    }
  }

  private func rollBack(_ backend: Connection.Backend?, on session: Session, resets: Bool = false) async {
    let rollback = Statement("ROLLBACK", [], isPrepared: false)
    let response = await session.run(Session.Request(statements: [rollback], backend: backend, resets: resets))
    // The server rolls back when the connection ends.
    if response.failure != nil { session.disconnect() }
  }

  /// Ends a process of the server that may still hold locks, without waiting for it.
  private func endLater(_ backend: Connection.Backend?) {
    Task { [pool, timeout] in
      // Without a server there is nothing to end.
      try? await pool.withSession(for: ObjectIdentifier(pool), until: .now + timeout) { session in
        await TransactionStatus.end(backend, on: session)
      }
    }
  }

  // MARK: Attempts

  /// The outcome of one attempt.
  private enum Attempt<Result> {
    case finished(Result)
    /// Nothing was changed.
    case failed(PostgresError)
    /// Nothing was changed, and the same attempt may succeed.
    case mustRepeat(PostgresError)
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
      switch try await outcome(of: attempt, during: operation, until: deadline) {
      case .finished(let result): return result
      case .failed(let error) where error.mustRepeat: failure = error
      case .failed(let error):
        let message = error.sqlState.isEmpty ? "no server can be reached" : "the server refused the operation"
        throw StoreError(error, during: operation, store: name, message: message)
      case .mustRepeat(let error): failure = error
      }
      guard number < PostgresHandle.attemptLimit, ContinuousClock.now < deadline else {
        throw StoreError(
          failure.isConflict ? .conflict : .ioFailed, during: operation, store: name,
          message: "gave up after \(number) attempts, the last of which the server or the connection ended",
          underlying: failure, isRetryable: true)
      }
      pool.noteRepeat()
      // A random pause, so that transactions that were in conflict are not in conflict again. Its limit grows beyond the
      // duration of transactions on a busy server.
      try await Task.sleep(for: .microseconds(Int.random(in: 0...(1000 << min(number, 8)))))
      number += 1
    }
  }

  private func outcome<Result>(
    of attempt: (Session, ContinuousClock.Instant) async throws -> Attempt<Result>, during operation: StoreOperation,
    until deadline: ContinuousClock.Instant
  ) async throws -> Attempt<Result> {
    do {
      return try await pool.withSession(for: ObjectIdentifier(self), until: deadline) {
        try await attempt($0, deadline)
      }
    } catch is SessionPool.PoolTimeout {
      throw StoreError(
        .timedOut, during: operation, store: name,
        message: "no connection of the pool became free within \(timeout); allow more connections",
        isRetryable: true)
    } catch let failure as SessionPool.ConnectionFailure {
      return .failed(failure.error)
    }
  }

  private func timeoutError(
    during operation: StoreOperation, outcome: StoreError.Outcome = .nothingChanged
  ) -> StoreError {
    StoreError(
      .timedOut, during: operation, store: name, message: "the server did not answer within \(timeout)",
      isRetryable: true, outcome: outcome)
  }

  private func unknownOutcome(_ error: PostgresError, during operation: StoreOperation) -> StoreError {
    StoreError(
      .ioFailed, during: operation, store: name, message: "the connection was lost during the commit",
      underlying: error, isRetryable: true, outcome: .unknown)
  }

  /// Finds out what became of a transaction whose connection was lost during the commit.
  ///
  /// - Parameters:
  ///   - result: The result of the attempt if the transaction was committed, or `nil` if it was lost.
  ///   - number: The number of the transaction.
  private func found<Result>(
    _ result: Result?, _ number: String, _ backend: Connection.Backend?, _ error: PostgresError, on session: Session,
    during operation: StoreOperation
  ) async throws -> Attempt<Result> {
    guard let backend else { throw unknownOutcome(error, during: operation) }
    // A server that does not tell its identity does not tell the outcome either.
    guard !backend.dataIdentity.isEmpty else {
      endLater(backend)
      throw unknownOutcome(error, during: operation)
    }
    switch await TransactionStatus.find(number, of: backend, on: session, within: timeout) {
    case .committed:
      guard let result else { throw unknownOutcome(error, during: operation) }
      return .finished(result)
    case .aborted: return .mustRepeat(error)
    case .unknown: throw unknownOutcome(error, during: operation)
    }
  }
}

/// How a transaction ends.
struct TransactionEnd<Result: Sendable>: Sendable {
  var result: Result

  /// The statements that are sent together with the commit.
  var statements: [Statement] = []

  /// Whether anything is to be committed.
  var commits = true
}
#endif
