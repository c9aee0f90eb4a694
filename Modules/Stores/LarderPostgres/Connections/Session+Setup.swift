#if Postgres
import Foundation
import Larder

/// The configuration that all sessions of a database share.
struct SessionConfiguration: Sendable {
  /// The keywords or the URI of the connection, which may hold a password.
  let connection: String

  /// The schema that holds the tables.
  let schema: String

  var durability: Durability.File
  var isolation: PostgresIsolation
  var access: StoreAccess

  /// The time limit of a statement, of making a connection, and of waiting for a session.
  let timeout: Duration

  /// The name of the schema for SQL.
  var quotedSchema: String { SessionConfiguration.quoted(schema) }

  /// The statements that set up a session, so it does not depend on the defaults of the role or of the database.
  ///
  /// Only a role whose commits also wait until standbys have applied them (`remote_apply`) keeps that. Each write sets the
  /// time limit of its statements; a read is cancelled by the client, since it may need longer on a slow line.
  var setup: [Statement] {
    let milliseconds = max(1, timeout.wholeMicroseconds / 1000)
    let isolation = isolation == .readCommitted ? "read committed" : "serializable"
    let syncing = """
      SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit', true) WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)
      """
    let commands = [
      "SET statement_timeout = 0",
      "SET search_path = \(quotedSchema)",
      "SET default_transaction_isolation = '\(isolation)'",
      "SET default_transaction_deferrable = off",
      "SET default_transaction_read_only = \(access == .readWrite ? "off" : "on")",
      durability == .synced ? syncing : "SET synchronous_commit = off",
      "SET lock_timeout = 0",
      "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')",
      "SET idle_in_transaction_session_timeout = \(milliseconds)",
    ]
    return (commands + planning.map { "SET \($0.name) = \($0.value)" }).map { .command($0) }
  }

  /// The settings of the planner for Larder's own statements.
  ///
  /// They read few rows, which one index finds, whatever the statistics of the table say. A plan that was made while the table
  /// was small would read all of a large one, until the server analyzes it. Statements with joins find their rows by arrays, and
  /// then join what was found; a nested loop could read a whole index instead. Without `jit = off`, the server would compile the
  /// few plans that must read a whole table.
  var planning: [(name: String, value: String)] {
    [
      ("enable_seqscan", "off"), ("enable_nestloop", "off"), ("plan_cache_mode", "force_generic_plan"), ("jit", "off"),
    ]
  }

  /// The statements that undo what the user's own SQL may have changed in a session, before ``setup``.
  static let reset = [
    "CLOSE ALL", "SET SESSION AUTHORIZATION DEFAULT", "RESET ALL", "UNLISTEN *", "SELECT pg_advisory_unlock_all()",
    "DISCARD TEMP", "DISCARD SEQUENCES",
  ].map { Statement.command($0) }

  /// Returns a name as an identifier for SQL.
  static func quoted(_ name: String) -> String {
    "\"" + name.replacingOccurrences(of: "\"", with: "\"\"") + "\""
  }
}

/// Connecting sessions, and setting them up.
extension Session {
  /// Connects to a server, and sets up the session.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - poller: The poller. It watches the session until it is lost.
  ///   - deadline: The time until which a server must have answered.
  ///   - onNotification: A closure that is called with each notification. Defaults to one that does nothing.
  ///   - onLoss: A closure that is called once, when the connection cannot be used any more.
  /// - Throws: ``PostgresError``.
  static func connect(
    _ configuration: SessionConfiguration, _ poller: Poller, until deadline: ContinuousClock.Instant,
    onNotification: @escaping @Sendable (ServerNotification) -> Void = { _ in },
    onLoss: @escaping @Sendable (Session, PostgresError) -> Void
  ) async throws(PostgresError) -> Session {
    let made: Result<Session, PostgresError> = await withCheckedContinuation { continuation in
      // Names are looked up and keys are derived without returning to the caller.
      Thread.detachNewThread {
        do throws(PostgresError) {
          let connection = try Connection.connect(configuration, until: deadline)
          let session = Session(connection, configuration, poller, onNotification: onNotification, onLoss: onLoss)
          continuation.resume(returning: .success(session))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    let session = try made.get()
    do throws(PostgresError) {
      try await session.setUp(until: deadline)
      return session
    } catch {
      session.close()
      throw error
    }
  }

  /// Sets up the session for the first time, and keeps the facts that the server tells.
  private func setUp(until deadline: ContinuousClock.Instant) async throws(PostgresError) {
    let answer = try await results(of: setup + [Session.factsQuery], until: deadline)
    // Other engines, and roles with few rights, cannot tell; the outcome of a lost commit is then unknown.
    let identity = try? await results(of: [Session.identityQuery], until: deadline).text(0, 0)
    withState { state in
      let process = answer.text(0, 3).flatMap { Int32($0) } ?? state.connection.process
      state.facts = Facts(
        process: process, start: answer.text(0, 0) ?? "", dataIdentity: identity ?? "",
        isSynced: answer.text(0, 1) == "t", isReplicated: answer.text(0, 2) == "t",
        keepsText: state.connection.keepsText, databaseName: state.connection.databaseName)
      guard process != state.connection.process else { return }
      state.poolerCheck = .command(
        """
        SELECT 1 / (pg_backend_pid() = \(process)
          AND coalesce(nullif(current_setting('larder.session', true), ''), '\(state.connection.token)')
            = '\(state.connection.token)')::int
        """)
    }
  }

  /// Sets up the session anew, after SQL of the user that may have changed it, or closes it if that fails.
  func reset() async {
    let deadline = ContinuousClock.now + configuration.timeout
    let check = Statement.command("SELECT 1 FROM pg_prepared_statements WHERE from_sql LIMIT 1")
    do throws(PostgresError) {
      let hasOthers = try await results(of: SessionConfiguration.reset + setup + [check], until: deadline).rowCount > 0
      // There is no other way to remove those of the user, whose names Larder does not know.
      if hasOthers { _ = try await results(of: [.command("DEALLOCATE ALL")], until: deadline) }
      withState { state in
        state.mustReset = false
        if hasOthers { state.connection.forgetPreparations() }
      }
    } catch {
      close(because: error)
    }
  }

  private var setup: [Statement] {
    configuration.setup + [.command("SET larder.session = '\(withState { $0.connection.token })'")]
  }

  /// Runs statements, and returns the result of the last one.
  private func results(
    of statements: [Statement], until deadline: ContinuousClock.Instant
  ) async throws(PostgresError) -> QueryResult {
    let response = await run(Request(statements: statements, deadline: deadline))
    switch response.failure {
    case nil: return response.results[statements.count - 1]
    case .refused(let error), .notSent(let error), .lost(let error): throw error
    case .timedOut: throw Connection.lateError
    }
  }

  private static let factsQuery = Statement.command(
    """
    SELECT (SELECT extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()),
      current_setting('fsync', true) IS NOT DISTINCT FROM 'on'
        AND current_setting('full_page_writes', true) IS NOT DISTINCT FROM 'on',
      coalesce(current_setting('synchronous_standby_names', true), '') <> '', pg_backend_pid()
    """)

  /// A query for the identity of the data.
  ///
  /// The statistics are discarded when a server recovers from a crash, so the time of their reset shows it.
  ///
  /// The timeline is that of the log that is being written, which begins the name of its file. The control file has the
  /// timeline of the last checkpoint, minutes after another server has taken over.
  static let identityQuery = Statement(
    """
    SELECT concat_ws('/', pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
      CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
      (SELECT stats_reset FROM pg_stat_bgwriter))
    """)
}
#endif
