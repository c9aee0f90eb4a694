#if Postgres
import CPostgres
import Larder

/// A connection to a server in pipeline mode, which only the thread of its session uses.
///
/// Nothing here waits, except that making a connection looks up names and sets up the session.
final class Connection {
  /// The identity of a connection, with which the outcome of its transactions can be found later.
  struct Backend: Sendable, Equatable {
    /// The process on the server.
    var process: Int32
    /// When that process started, as text of the server, because the numbers of processes are used again.
    var start: String
    /// The identity of the data, or an empty string if the server does not tell.
    ///
    /// It changes when another server takes over, and when the server recovers from a crash, because the numbers of lost
    /// transactions are then used again.
    var dataIdentity: String
  }

  /// The properties of a server that its promises depend on.
  struct Server: Sendable, Equatable {
    /// Whether a commit survives power failure on the server.
    var isSynced: Bool
    /// Whether a commit waits for another server.
    var isReplicated: Bool
  }

  /// The number of Larder's statements that a connection keeps prepared.
  ///
  /// The others are parsed each time.
  private static let preparedLimit = 512

  private let connection: OpaquePointer
  let backend: Backend
  let server: Server

  /// The names of prepared statements by their SQL.
  private var prepared: [StatementText: String] = [:]

  /// A random text in the names of prepared statements and in a setting of the session, which no other connection has.
  ///
  /// Behind a pooler, another program can have prepared a different statement on the same connection of the server.
  private let token: String

  /// The number of the last name.
  private var lastPrepared = 0

  /// A statement that fails if the session is not the one that was set up, or `nil` without a pooler.
  ///
  /// A pooler that exchanges connections between transactions would run statements with the settings of other programs.
  private let poolerCheck: Statement?

  /// Whether the connection cannot be used any more, although the server still answers.
  private var isBroken = false

  private init(
    _ connection: OpaquePointer, token: String, backend: Backend, server: Server
  ) {
    self.connection = connection
    self.token = token
    // A pooler makes up the number of the process.
    poolerCheck =
      PQbackendPID(connection) == backend.process
      ? nil
      : Statement(
        """
        SELECT 1 / (pg_backend_pid() = \(backend.process)
          AND coalesce(nullif(current_setting('larder.session', true), ''), '\(token)') = '\(token)')::int
        """, [], isPrepared: false)
    self.backend = backend
    self.server = server
  }

  deinit {
    PQfinish(connection)
  }

  /// The database, as the server knows it.
  var databaseName: String { String(cString: PQdb(connection)) }

  var socket: Int32 { PQsocket(connection) }

  // MARK: Connecting

  /// Connects, and sets up the session.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - host: The host, or `nil` for that of the configuration.
  ///   - wait: A closure that waits until a socket is ready, and returns whether it is before the deadline.
  /// - Throws: ``PostgresError``.
  static func connect(
    _ configuration: SessionConfiguration, to host: SessionConfiguration.Host? = nil,
    wait: (_ socket: Int32, _ forWriting: Bool) -> Bool
  ) throws(PostgresError) -> Connection {
    // A later keyword replaces an earlier one, and `dbname` stands for all that the user's text contains. The intervals of
    // TCP, in seconds and milliseconds, find a server that has disappeared.
    let milliseconds = String(max(1, configuration.timeout.microseconds / 1000))
    var keywords = [
      "fallback_application_name", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
      "dbname", "client_encoding",
    ]
    var values = ["larder", "30", "10", "3", milliseconds, configuration.connection, "UTF8"]
    if let host {
      keywords += ["host", "port"]
      values += [host.name, host.port]
    }
    let started = withCStrings(keywords) { keywords in
      withCStrings(values) { PQconnectStartParams(keywords, $0, 1) }
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
      guard wait(PQsocket(raw), status == PGRES_POLLING_WRITING) else {
        throw lateError
      }
      status = PQconnectPoll(raw)
      if status == PGRES_POLLING_FAILED { throw connectError(raw) }
    }
    PQsetErrorVerbosity(raw, PQERRORS_DEFAULT)
    guard PQsetnonblocking(raw, 1) == 0 else { throw error(of: raw) }
    let token = String(UInt64.random(in: 0 ... .max), radix: 36)
    try run("\(configuration.setup); SET larder.session = '\(token)'", on: raw, wait)
    let facts = try run(Connection.factsQuery, on: raw, wait)
    // Other engines, and roles with few rights, cannot tell; the outcome of a lost commit is then unknown.
    let identity = try? run(Connection.identityQuery, on: raw, wait)
    guard PQenterPipelineMode(raw) == 1 else { throw error(of: raw) }
    isReady = true
    return Connection(
      raw, token: token,
      backend: Backend(
        process: facts.text(0, 3).flatMap { Int32($0) } ?? PQbackendPID(raw), start: facts.text(0, 0) ?? "",
        dataIdentity: identity?.text(0, 0) ?? ""),
      server: Server(
        isSynced: facts.text(0, 1) == "t", isReplicated: facts.text(0, 2) == "t")
    )
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
    _ sql: String, on connection: OpaquePointer, _ wait: (_ socket: Int32, _ forWriting: Bool) -> Bool
  ) throws(PostgresError) -> QueryResult {
    guard PQsendQuery(connection, sql) == 1 else { throw error(of: connection) }
    while PQflush(connection) == 1 {
      guard wait(PQsocket(connection), true) else { throw lateError }
    }
    var last: QueryResult?
    var failure: PostgresError?
    while true {
      while PQisBusy(connection) == 1 {
        guard wait(PQsocket(connection), false) else { throw lateError }
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

  private static func error(of connection: OpaquePointer) -> PostgresError {
    PostgresError(sqlState: "", message: firstLine(of: String(cString: PQerrorMessage(connection))))
  }

  private static func error(of result: OpaquePointer, on connection: OpaquePointer) -> PostgresError {
    guard let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))) else { return error(of: connection) }
    let message = PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) } ?? ""
    return PostgresError(sqlState: String(cString: state), message: firstLine(of: message))
  }

  private static func firstLine(of message: String) -> String {
    message.split(separator: "\n").first.map { String($0) } ?? "the connection was lost"
  }

  // MARK: Sending

  /// An answer that the server owes for what was sent.
  enum Expected: Equatable {
    /// That the connection of the server is still the same.
    case poolerCheck
    /// That a statement was prepared.
    case preparation(sql: String)
    /// The rows of a statement.
    case rows
    /// The end of a request.
    case synchronization
  }

  /// Adds a request to what is sent.
  ///
  /// - Returns: The answers that will come, or `nil` if the connection is unusable.
  func send(_ request: Session.Request) -> [Expected]? {
    var expected: [Expected] = []
    if let poolerCheck {
      guard send(poolerCheck, &expected) else { return nil }
      expected[0] = .poolerCheck
    }
    for (index, statement) in request.statements.enumerated() {
      guard send(statement, &expected) else { return nil }
      if request.flushes.contains(index + 1), PQsendFlushRequest(connection) != 1 { return nil }
    }
    if let ending = request.ending, !send(ending, &expected) { return nil }
    guard PQpipelineSync(connection) == 1 else { return nil }
    expected.append(.synchronization)
    return expected
  }

  private func send(_ statement: Statement, _ expected: inout [Expected]) -> Bool {
    let parameters = statement.parameters
    let types = parameters.map { Oid($0.type) }
    let text = StatementText(sql: statement.sql)
    var name = prepared[text]
    let isPrepared = statement.isPrepared && (name != nil || prepared.count < Connection.preparedLimit)
    if isPrepared, name == nil {
      lastPrepared += 1
      let new = "larder_\(token)_\(lastPrepared)"
      guard PQsendPrepare(connection, new, statement.sql, Int32(types.count), types) == 1 else { return false }
      expected.append(.preparation(sql: statement.sql))
      prepared[text] = new
      name = new
    }
    let lengths = parameters.map { Int32(clamping: $0.bytes?.count ?? 0) }
    let formats = parameters.map { $0.isText ? 0 : 1 as Int32 }
    let resultFormat: Int32 = statement.isPrepared ? 1 : 0
    let isSent = withPointers(to: parameters) { pointers in
      if isPrepared, let name {
        PQsendQueryPrepared(connection, name, Int32(types.count), pointers, lengths, formats, resultFormat)
      } else {
        PQsendQueryParams(
          connection, statement.sql, Int32(types.count), types, pointers, lengths, formats, resultFormat)
      }
    }
    expected.append(.rows)
    return isSent == 1
  }

  /// Forgets that a statement was prepared, because the server refused it or has lost it.
  func forget(_ sql: String) {
    prepared[StatementText(sql: sql)] = nil
  }

  /// Forgets all prepared statements.
  func forgetPreparations() {
    prepared = [:]
  }

  /// Sends as much as the socket takes.
  ///
  /// - Returns: Whether more is left, or `nil` if the connection is lost.
  func flush() -> Bool? {
    switch PQflush(connection) {
    case 0: false
    case 1: true
    default: nil
    }
  }

  // MARK: Receiving

  /// An answer of the server.
  enum Answer {
    case result(QueryResult)
    case failure(PostgresError)
    /// The statement was skipped, because an earlier one of the request failed.
    case skipped
    /// The end of the answers to one statement.
    case end
    case synchronization
  }

  /// Reads what has arrived.
  ///
  /// - Throws: ``PostgresError`` if the connection is lost.
  func readAvailable() throws(PostgresError) {
    guard PQconsumeInput(connection) == 1 else { throw Connection.error(of: connection) }
  }

  /// Returns the next answer, or `nil` if it has not arrived yet.
  func nextAnswer() -> Answer? {
    guard PQisBusy(connection) == 0 else { return nil }
    guard let result = PQgetResult(connection) else { return .end }
    switch PQresultStatus(result) {
    case PGRES_PIPELINE_SYNC:
      PQclear(result)
      return .synchronization
    case PGRES_PIPELINE_ABORTED:
      PQclear(result)
      return .skipped
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
      return .result(QueryResult(result))
    case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
      // The library expects its data and nothing else, so the connection ends.
      PQclear(result)
      isBroken = true
      return .failure(PostgresError(sqlState: "0A000", message: "COPY is not supported"))
    default:
      defer { PQclear(result) }
      return .failure(Connection.error(of: result, on: connection))
    }
  }

  /// Whether the connection is lost or cannot be used any more.
  var isLost: Bool { isBroken || PQstatus(connection) == CONNECTION_BAD }

  /// The error that the connection ended with.
  var lossError: PostgresError { Connection.error(of: connection) }

  /// Returns the next notification that has arrived, or `nil`.
  func nextNotification() -> String? {
    guard let notification = PQnotifies(connection) else { return nil }
    defer { PQfreemem(notification) }
    return String(cString: notification.pointee.relname)
  }
}

/// The text of a statement, compared by its bytes, because a composed and a decomposed "é" are two names.
private struct StatementText: Hashable {
  let sql: String

  static func == (left: StatementText, right: StatementText) -> Bool {
    var (left, right) = (left.sql, right.sql)
    return left.withUTF8 { left in
      right.withUTF8 { right in left.count == right.count && left.elementsEqual(right) }
    }
  }

  func hash(into hasher: inout Hasher) {
    var sql = sql
    // Not byte by byte, because a long statement would take longer to find than to send.
    sql.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

/// Calls a closure with an array of C strings that ends with NULL.
private func withCStrings<Result>(
  _ strings: [String], _ body: ([UnsafePointer<CChar>?]) -> Result
) -> Result {
  func next(_ rest: ArraySlice<String>, _ pointers: [UnsafePointer<CChar>?]) -> Result {
    guard let first = rest.first else { return body(pointers + [nil]) }
    return first.withCString { next(rest.dropFirst(), pointers + [$0]) }
  }
  return next(strings[...], [])
}

/// Calls a closure with pointers to the bytes of parameters, which are NULL for the value NULL.
private func withPointers<Result>(
  to parameters: [Parameter], _ body: ([UnsafePointer<CChar>?]) -> Result
) -> Result {
  // One after another, behind a byte for those that are empty.
  var bytes: [UInt8] = [0]
  bytes.reserveCapacity(parameters.reduce(1) { $0 + ($1.bytes?.count ?? 0) })
  let offsets = parameters.map { parameter in
    parameter.bytes.map { value in
      defer { bytes += value }
      return value.isEmpty ? 0 : bytes.count
    }
  }
  return bytes.withUnsafeBytes { buffer in
    let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    return body(offsets.map { offset in offset.flatMap { start?.advanced(by: $0) } })
  }
}
#endif
