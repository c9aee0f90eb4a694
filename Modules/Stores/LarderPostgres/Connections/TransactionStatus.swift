#if Postgres
import Larder

/// The outcome of a transaction whose connection was lost during the commit.
enum TransactionStatus: Sendable, Equatable {
  case committed
  case aborted
  case unknown

  /// A statement for the number of the running transaction, which gets one.
  static let number = Statement("SELECT pg_current_xact_id()::text", [], isPrepared: false)

  /// A statement for the number of a transaction that begins, which also limits the time of each of its statements.
  static func beginning(limit: Duration) -> Statement {
    let milliseconds = Int32(clamping: max(1, limit.microseconds / 1000))
    return Statement(
      "SELECT pg_current_xact_id()::text, set_config('statement_timeout', $1, true)", .text(String(milliseconds)))
  }

  private static let identity = Statement(Connection.identityQuery)

  /// A statement whose commit waits for the server that the data is replicated to, and so for all earlier ones.
  static let replicatedMessage = Statement("SELECT pg_logical_emit_message(true, 'larder', '')::text")

  private static let pause = Duration.milliseconds(20)

  /// Asks the server.
  ///
  /// A process of the server may still commit after the connection was lost, so it is ended first.
  ///
  /// - Parameters:
  ///   - number: The number of the transaction.
  ///   - backend: The connection.
  ///   - session: The session of the connection, which connects again.
  ///   - limit: The time after which the outcome is unknown.
  static func find(
    _ number: String, of backend: Connection.Backend, on session: Session, within limit: Duration
  ) async -> TransactionStatus {
    let deadline = ContinuousClock.now + limit
    let status = Statement("SELECT pg_xact_status($1::text::xid8)", .text(number))
    repeat {
      let response = await session.run(Session.Request(statements: [identity, ending(of: backend), status]))
      // The number is in the future, so another server has taken over. Waiting until it is used would give a wrong answer.
      if case .refused(let error) = response.failure, error.sqlState == "22023" { return .unknown }
      if response.failure == nil {
        // Another server, or one that has lost commits in a crash, uses the same numbers for other transactions.
        let isSame = !backend.dataIdentity.isEmpty && response.results[0].text(0, 0) == backend.dataIdentity
        let answer = response.results[2].text(0, 0)
        if let found = TransactionStatus(answer: answer, isSameData: isSame) {
          guard found == .committed, session.knownFacts.server?.isReplicated == true else { return found }
          let message = await session.run(Session.Request(statements: [replicatedMessage]))
          return message.failure == nil ? .committed : .unknown
        }
      }
      // The outcome matters even to a task that was cancelled.
      await Task { try? await Task.sleep(for: pause) }.value
    } while ContinuousClock.now < deadline
    return .unknown
  }

  /// Ends a process of the server that may still hold locks, if the server can be reached.
  static func end(_ backend: Connection.Backend?, on session: Session) async {
    guard let backend else { return }
    _ = await session.run(Session.Request(statements: [ending(of: backend)]))
  }

  /// Ends a process, and waits until it has ended.
  private static func ending(of backend: Connection.Backend) -> Statement {
    Statement(
      """
      SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
      WHERE pid = $1 AND extract(epoch FROM backend_start)::text = $2
      """, .integer(Int64(backend.process)), .text(backend.start))
  }

  /// Interprets the answer of the server, or returns `nil` if the transaction is still running.
  init?(answer: String?, isSameData: Bool) {
    switch (isSameData, answer) {
    case (false, _), (true, nil): self = .unknown
    case (true, "committed"): self = .committed
    case (true, "aborted"): self = .aborted
    case (true, _): return nil
    }
  }
}
#endif
