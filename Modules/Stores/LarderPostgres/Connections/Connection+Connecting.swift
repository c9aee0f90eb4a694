#if Postgres
import CPostgres
import Foundation
import Larder

/// Making connections, and setting up their sessions.
extension Connection {
  /// Connects to one of the hosts, and sets up the session.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - deadline: The time until which one of the hosts must answer.
  /// - Throws: ``PostgresError``.
  static func connect(
    _ configuration: SessionConfiguration, until deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> Connection {
    let options = ConnectionOptions.effective(for: configuration.connection)
    let limit = options["connect_timeout"].flatMap { Int($0) }.flatMap { $0 > 0 ? Duration.seconds($0) : nil }
    var failure = lateError
    /// Tries some hosts, each for its share of the time, until one answers.
    func connect(
      _ hosts: [Host], until end: ContinuousClock.Instant,
      _ connect: (Host, ContinuousClock.Instant) throws(PostgresError) -> Connection
    ) throws(PostgresError) -> Connection {
      for (index, host) in hosts.enumerated() {
        let share = ContinuousClock.now.duration(to: end) / (hosts.count - index)
        do throws(PostgresError) {
          return try connect(host, .now + share)
        } catch {
          failure = error
        }
      }
      throw failure
    }
    return try connect(Host.all(of: options), until: deadline) { host, end throws(PostgresError) in
      try connect(host.resolved(), until: end) { address, end throws(PostgresError) in
        try Connection.connect(configuration, to: address, until: limit.map { min(.now + $0, end) } ?? end)
      }
    }
  }

  private static func connect(
    _ configuration: SessionConfiguration, to host: Host, until deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> Connection {
    // A later keyword replaces an earlier one, and `dbname` stands for all that the user's text contains. The intervals of
    // TCP, in seconds and milliseconds, find a server that has disappeared.
    let milliseconds = String(max(1, configuration.timeout.microseconds / 1000))
    let keywords = [
      "fallback_application_name", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
      "dbname", "client_encoding",
    ]
    let values = ["larder", "30", "10", "3", milliseconds, configuration.connection, "UTF8"]
    let started = withCStrings(keywords + host.keywords.map(\.key)) { keywords in
      withCStrings(values + host.keywords.map(\.value)) { PQconnectStartParams(keywords, $0, 1) }
    }
    guard let raw = started else { throw PostgresError(sqlState: "53200", message: "out of memory") }
    // The messages that a server sends beside results would be printed to the standard error otherwise.
    PQsetNoticeProcessor(raw, { _, _ in }, nil)
    // So that the code can be found in the message, which is all that the library keeps of a refused connection.
    PQsetErrorVerbosity(raw, PQERRORS_VERBOSE)
    var isReady = false
    defer { if !isReady { PQfinish(raw) } }
    guard PQstatus(raw) != CONNECTION_BAD else { throw connectError(raw) }
    var status = PGRES_POLLING_WRITING
    while status != PGRES_POLLING_OK {
      guard wait(for: raw, forWriting: status == PGRES_POLLING_WRITING, until: deadline) else { throw lateError }
      status = PQconnectPoll(raw)
      if status == PGRES_POLLING_FAILED { throw connectError(raw) }
    }
    PQsetErrorVerbosity(raw, PQERRORS_DEFAULT)
    guard PQsetnonblocking(raw, 1) == 0 else { throw error(of: raw) }
    let token = String(UInt64.random(in: 0 ... .max), radix: 36)
    try run(setup(configuration, token), on: raw, until: deadline)
    let facts = try run(Connection.factsQuery, on: raw, until: deadline)
    // Other engines, and roles with few rights, cannot tell; the outcome of a lost commit is then unknown.
    let identity = try? run(Connection.identityQuery, on: raw, until: deadline)
    guard PQenterPipelineMode(raw) == 1 else { throw error(of: raw) }
    isReady = true
    return Connection(
      raw, token: token,
      backend: Backend(
        process: facts.text(0, 3).flatMap { Int32($0) } ?? PQbackendPID(raw), start: facts.text(0, 0) ?? "",
        dataIdentity: identity?.text(0, 0) ?? ""),
      server: Server(
        isSynced: facts.text(0, 1) == "t", isReplicated: facts.text(0, 2) == "t",
        keepsText: PQparameterStatus(raw, "server_encoding").map {
          ["UTF8", "SQL_ASCII"].contains(String(cString: $0))
        } ?? true)
    )
  }

  private static func setup(_ configuration: SessionConfiguration, _ token: String) -> String {
    "\(configuration.setup); SET larder.session = '\(token)'"
  }

  /// Sets up the session anew, after SQL of the user that may have changed it.
  ///
  /// - Throws: ``PostgresError``. The connection is unusable then.
  func reset(_ configuration: SessionConfiguration, until deadline: ContinuousClock.Instant) throws(PostgresError) {
    guard PQexitPipelineMode(connection) == 1 else { throw lossError }
    let sql = "\(SessionConfiguration.reset); \(Connection.setup(configuration, token))"
    let prepared = "SELECT 1 FROM pg_prepared_statements WHERE from_sql LIMIT 1"
    if try Connection.run("\(sql); \(prepared)", on: connection, until: deadline).rowCount > 0 {
      // There is no other way to remove those of the user, whose names Larder does not know.
      try Connection.run("DEALLOCATE ALL", on: connection, until: deadline)
      forgetPreparations()
    }
    guard PQenterPipelineMode(connection) == 1 else { throw lossError }
  }

  /// Waits for the socket of a connection.
  ///
  /// - Returns: Whether it is ready.
  private static func wait(
    for connection: OpaquePointer, forWriting: Bool, until deadline: ContinuousClock.Instant
  ) -> Bool {
    var descriptor = [pollfd(fd: PQsocket(connection), events: Int16(forWriting ? POLLOUT : POLLIN), revents: 0)]
    return poll(&descriptor, until: deadline) > 0
  }

  private static let factsQuery = """
    SELECT (SELECT extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()),
      current_setting('fsync', true) IS NOT DISTINCT FROM 'on'
        AND current_setting('full_page_writes', true) IS NOT DISTINCT FROM 'on',
      coalesce(current_setting('synchronous_standby_names', true), '') <> '', pg_backend_pid()
    """

  /// The statistics are discarded when a server recovers from a crash, so that the time of their reset shows it.
  ///
  /// The timeline is that of the log that is being written, which begins the name of its file. The control file has the
  /// timeline of the last checkpoint, minutes after another server has taken over.
  static let identityQuery = """
    SELECT concat_ws('/', pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
      CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
      (SELECT stats_reset FROM pg_stat_bgwriter))
    """

  /// Runs statements before the session is used.
  ///
  /// - Returns: The result of the last statement.
  @discardableResult
  private static func run(
    _ sql: String, on connection: OpaquePointer, until deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> QueryResult {
    guard PQsendQuery(connection, sql) == 1 else { throw error(of: connection) }
    while PQflush(connection) == 1 {
      guard wait(for: connection, forWriting: true, until: deadline) else { throw lateError }
    }
    var last: QueryResult?
    var failure: PostgresError?
    while true {
      while PQisBusy(connection) == 1 {
        guard wait(for: connection, forWriting: false, until: deadline) else { throw lateError }
        guard PQconsumeInput(connection) == 1 else { throw error(of: connection) }
      }
      guard let result = PQgetResult(connection) else { break }
      let status = PQresultStatus(result)
      if status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK {
        last = QueryResult(result)
      } else {
        failure = failure ?? error(of: result, on: connection)
        PQclear(result)
      }
    }
    if let failure { throw failure }
    guard let last else { throw error(of: connection) }
    return last
  }

  private static var lateError: PostgresError {
    PostgresError(sqlState: "", message: "the connection was not made within the time limit")
  }

  private static func connectError(_ connection: OpaquePointer) -> PostgresError {
    guard PQconnectionNeedsPassword(connection) == 0 else {
      return PostgresError(sqlState: "28P01", message: "the server asks for a password, and there is none")
    }
    let message = String(cString: PQerrorMessage(connection))
    // Such as "FATAL:  28P01: password authentication failed", whose first word may be translated.
    let state = message.matches(of: #/: +(?=[A-Z]*[0-9])([0-9A-Z]{5}): /#).last.map { String($0.output.1) }
    return PostgresError(sqlState: state ?? "", message: firstLine(of: message))
  }

  static func error(of connection: OpaquePointer) -> PostgresError {
    PostgresError(sqlState: "", message: firstLine(of: String(cString: PQerrorMessage(connection))))
  }

  static func error(of result: OpaquePointer, on connection: OpaquePointer) -> PostgresError {
    guard let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))) else { return error(of: connection) }
    let message = PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) } ?? ""
    return PostgresError(sqlState: String(cString: state), message: firstLine(of: message))
  }

  private static func firstLine(of message: String) -> String {
    message.split(separator: "\n").first.map { String($0) } ?? "the connection was lost"
  }
}

/// Waits until one of some descriptors is ready.
///
/// - Parameters:
///   - descriptors: The descriptors.
///   - deadline: The time until which it waits, or `nil` for no limit.
/// - Returns: The number of those that are ready.
func poll(_ descriptors: inout [pollfd], until deadline: ContinuousClock.Instant?) -> Int32 {
  while true {
    let limit = deadline.map {
      Int32(clamping: max(0, (ContinuousClock.now.duration(to: $0).microseconds + 999) / 1000))
    }
    let ready = poll(&descriptors, nfds_t(descriptors.count), limit ?? -1)
    if ready >= 0 || errno != EINTR { return ready }
  }
}
#endif
