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

  /// The number of bytes of a statement after which all is sent before the next one.
  private static let drainedSize = 1 << 20

  let connection: OpaquePointer
  let backend: Backend
  let server: Server

  /// The names of prepared statements by their SQL.
  private var prepared: [StatementText: String] = [:]

  /// A random text in the names of prepared statements and in a setting of the session, which no other connection has.
  ///
  /// Behind a pooler, another program can have prepared a different statement on the same connection of the server.
  let token: String

  /// The number of the last name.
  private var lastPrepared = 0

  /// A statement that fails if the session is not the one that was set up, or `nil` without a pooler.
  ///
  /// A pooler that exchanges connections between transactions would run statements with the settings of other programs.
  private let poolerCheck: Statement?

  /// Whether the connection cannot be used any more, although the server still answers.
  private var isBroken = false

  init(
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
  /// - Parameters:
  ///   - request: The request.
  ///   - drain: A closure that sends all that was added, and returns whether that succeeded. It is called after each large
  ///     statement, because the library moves all that is left after each part that it has sent.
  /// - Returns: The answers that will come, or `nil` if the connection is unusable. The server has not got the end of the
  ///   request then, without which it changes nothing.
  func send(_ request: Session.Request, drain: () -> Bool) -> ArraySlice<Expected>? {
    var expected: [Expected] = []
    // A transaction is not exchanged before its end.
    if let poolerCheck, request.backend == nil {
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
      if statement.size > Connection.drainedSize, !drain() { return nil }
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
    // The library connects again for it, and waits without a limit.
    guard CancelRequest.begin() else { return }
    let request = CancelRequest(connection)
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

  /// The number of requests under way, which a server that hangs would let grow.
  private static let running = Locked(0)

  /// Returns whether another request may be sent.
  static func begin() -> Bool {
    running.withLock { running in
      guard running < 8 else { return false }
      running += 1
      return true
    }
  }

  init(_ connection: OpaquePointer) { request = PQgetCancel(connection) }

  deinit { PQfreeCancel(request) }

  func send() {
    defer { CancelRequest.running.withLock { $0 -= 1 } }
    // If it cannot be sent, the connection is given up soon.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
      _ = PQcancel(request, message.baseAddress, Int32(message.count))
    }
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
