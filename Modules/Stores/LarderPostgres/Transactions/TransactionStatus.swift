#if Postgres
import Larder

/// The outcome of a transaction whose connection was lost during the commit.
enum TransactionStatus: Sendable, Equatable {
  case committed
  case aborted
  case unknown

  /// A statement for the number of the running transaction, which gets one.
  static let number = Statement.command("SELECT pg_current_xact_id()::text")

  /// A statement for the number of a transaction that begins, which also limits the time of each of its statements.
  static func beginning(limit: Duration) -> Statement {
    let milliseconds = Int32(clamping: max(1, limit.wholeMicroseconds / 1000))
    return Statement(
      "SELECT pg_current_xact_id()::text, set_config('statement_timeout', $1, true)", .text(String(milliseconds)))
  }

  /// A statement whose commit waits for the server that the data is replicated to, and so for all earlier ones.
  static let replicatedMessage = Statement("SELECT pg_logical_emit_message(true, 'larder', '')::text")

  /// Asks the server.
  ///
  /// A process of the server may still commit after the connection was lost, so it is ended first.
  ///
  /// - Parameters:
  ///   - number: The number of the transaction, or `nil` if it did not arrive.
  ///   - backend: The connection.
  ///   - pool: The sessions.
  ///   - limit: The time after which the outcome is unknown.
  static func find(
    _ number: String?, of backend: Session.Facts, in pool: SessionPool, within limit: Duration
  ) async -> TransactionStatus {
    // A server that does not tell its identity does not tell the outcome either.
    guard let number, !backend.dataIdentity.isEmpty else {
      endLater(backend, in: pool)
      return .unknown
    }
    let deadline = ContinuousClock.now + limit
    let status = Statement("SELECT pg_xact_status($1::text::xid8)", .text(number))
    // The outcome matters even to a task that was cancelled.
    return await Task {
      repeat {
        do {
          let found = try await pool.withSession(for: ObjectIdentifier(pool), until: deadline) { session in
            let request = Request(statements: [Session.identityQuery, ending(of: backend), status])
            return await TransactionStatus(session.run(request), of: backend, on: session)
          }
          if let found { return found }
        } catch {
          // No server can be reached yet.
        }
        await pause()
      } while ContinuousClock.now < deadline
      return .unknown
    }.value
  }

  /// Waits before the next question; the task is never cancelled.
  private static func pause() async {
    try? await Task.sleep(for: .milliseconds(20))
  }

  /// Interprets the answer to all questions, or returns `nil` if it is not known yet.
  private init?(_ response: Response, of backend: Session.Facts, on session: Session) async {
    // The number is in the future, so another server has taken over. Waiting until it is used would give a wrong answer.
    if case .refused(let error) = response.failure, error.sqlState == "22023" {
      self = .unknown
      return
    }
    guard response.failure == nil else { return nil }
    // Another server, or one that has lost commits in a crash, uses the same numbers for other transactions.
    let isSame = !backend.dataIdentity.isEmpty && response.results[0].text(0, 0) == backend.dataIdentity
    self.init(answer: response.results[2].text(0, 0), isSameData: isSame)
    guard self == .committed, session.facts.isReplicated else { return }
    let message = await session.run(Request(statements: [TransactionStatus.replicatedMessage]))
    if message.failure != nil { self = .unknown }
  }

  /// Ends a process of the server that may still hold locks, without waiting for it.
  static func endLater(_ backend: Session.Facts, in pool: SessionPool) {
    let deadline = ContinuousClock.now + pool.configuration.timeout
    Task {
      // Without a server there is nothing to end.
      try? await pool.withSession(for: ObjectIdentifier(pool), until: deadline) { session in
        _ = await session.run(Request(statements: [ending(of: backend)]))
      }
    }
  }

  /// Ends a process, and waits until it has ended.
  private static func ending(of backend: Session.Facts) -> Statement {
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
