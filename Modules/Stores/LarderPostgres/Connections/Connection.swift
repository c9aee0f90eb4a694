#if Postgres
import CPostgres
import Foundation
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
    /// Whether the encoding of the database keeps every character.
    var keepsText: Bool
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
    let hosts = Host.all(of: options)
    var failure = lateError
    for (index, host) in hosts.enumerated() {
      let now = ContinuousClock.now
      let share = now.duration(to: deadline) / (hosts.count - index)
      do throws(PostgresError) {
        return try connect(configuration, to: host, until: now + min(share, limit ?? share))
      } catch {
        failure = error
      }
    }
    throw failure
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
    /// That a transaction has begun.
    case beginning
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
  func send(_ request: Session.Request) -> ArraySlice<Expected>? {
    var expected: [Expected] = []
    if let poolerCheck {
      guard send(poolerCheck, named: nil, &expected) else { return nil }
      expected[0] = .poolerCheck
    }
    if let beginning = request.beginning {
      guard let name = prepare(beginning, &expected), send(beginning, named: name, &expected) else { return nil }
      expected[expected.count - 1] = .beginning
    }
    let statements = request.statements + (request.ending.map { [$0] } ?? [])
    // Now, before a statement limits the time of the later ones: the server counts from the preparation on, also while the
    // parameters arrive over a slow line.
    var names: [String?] = []
    for statement in statements {
      guard let name = prepare(statement, &expected) else { return nil }
      names.append(name)
    }
    for (index, statement) in statements.enumerated() {
      guard send(statement, named: names[index], &expected) else { return nil }
      if request.flushes.contains(index + 1), PQsendFlushRequest(connection) != 1 { return nil }
    }
    guard PQpipelineSync(connection) == 1 else { return nil }
    return (expected + [.synchronization])[...]
  }

  /// Prepares one of Larder's statements, unless it is prepared.
  ///
  /// - Returns: The name, which is `nil` if the statement is sent with its text, or `nil` if the connection is unusable.
  private func prepare(_ statement: Statement, _ expected: inout [Expected]) -> String?? {
    guard statement.isPrepared else { return .some(nil) }
    let text = StatementText(sql: statement.sql)
    if let name = prepared[text] { return name }
    guard prepared.count < Connection.preparedLimit else { return .some(nil) }
    lastPrepared += 1
    let name = "larder_\(token)_\(lastPrepared)"
    let types = statement.parameters.map { Oid($0.type) }
    guard PQsendPrepare(connection, name, statement.sql, Int32(types.count), types) == 1 else { return nil }
    expected.append(.preparation(sql: statement.sql))
    prepared[text] = name
    return name
  }

  private func send(_ statement: Statement, named name: String?, _ expected: inout [Expected]) -> Bool {
    let parameters = statement.parameters
    let lengths = parameters.map { Int32(clamping: $0.bytes?.count ?? 0) }
    let formats = parameters.map { $0.isText ? 0 : 1 as Int32 }
    let resultFormat: Int32 = statement.isPrepared ? 1 : 0
    let isSent = withPointers(to: parameters) { pointers in
      if let name {
        PQsendQueryPrepared(connection, name, Int32(parameters.count), pointers, lengths, formats, resultFormat)
      } else {
        PQsendQueryParams(
          connection, statement.sql, Int32(parameters.count), parameters.map { Oid($0.type) }, pointers, lengths,
          formats,
          resultFormat)
      }
    }
    expected.append(.rows)
    return isSent == 1
  }

  /// Forgets that a statement was prepared, because the server refused or skipped it.
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

  /// Whether a transaction was running at the end of the latest request, also one that has failed.
  var isInTransaction: Bool { PQtransactionStatus(connection) != PQTRANS_IDLE }

  /// Asks the server to cancel the running statement, without waiting for it.
  func cancel() {
    let request = CancelRequest(connection)
    // The library connects again for it, and waits.
    Thread.detachNewThread { request.send() }
  }

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

/// A request to cancel what a connection runs, which any thread can send.
///
/// Unchecked, because the library never changes it after it was made, and `deinit` runs after the last use.
private final class CancelRequest: @unchecked Sendable {
  private let request: OpaquePointer?

  init(_ connection: OpaquePointer) { request = PQgetCancel(connection) }

  deinit { PQfreeCancel(request) }

  func send() {
    // If it cannot be sent, the connection is given up soon.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
      _ = PQcancel(request, message.baseAddress, Int32(message.count))
    }
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
