#if Postgres
import CPostgres
import Foundation
import Larder

/// A connection of libpq in pipeline mode, which one thread at a time uses.
///
/// Nothing here waits.
final class Connection {
  /// The number of Larder's statements that a connection keeps prepared.
  ///
  /// The others are parsed each time.
  private static let preparedLimit = 512

  /// The number of requests to cancel under way, which a server that hangs would let grow.
  private static let cancelCount = Locked(0)

  private let raw: OpaquePointer

  /// The names of prepared statements by the bytes of their SQL, because a composed and a decomposed "é" are two names.
  private var prepared: [Data: String] = [:]

  /// The number of the last name.
  private var lastPrepared = 0

  /// A random text in the names of prepared statements and in a setting of the session, which no other connection has.
  ///
  /// Behind a pooler, another program can have prepared a different statement on the same connection of the server.
  let token = String(UInt64.random(in: 0 ... .max), radix: 36)

  /// A Boolean value that indicates whether the connection cannot be used any more, although the server still answers.
  private var isBroken = false

  /// Takes over a connection of the library that is made.
  ///
  /// - Throws: ``PostgresError``.
  init(_ raw: OpaquePointer) throws(PostgresError) {
    self.raw = raw
    guard PQsetnonblocking(raw, 1) == 0, PQenterPipelineMode(raw) == 1 else { throw error }
  }

  deinit {
    PQfinish(raw)
  }

  var socket: Int32 { PQsocket(raw) }

  /// The database, as the server knows it.
  var databaseName: String { String(cString: PQdb(raw)) }

  /// The number of the process of the server, which a pooler makes up.
  var process: Int32 { PQbackendPID(raw) }

  /// A Boolean value that indicates whether the encoding of the database keeps every character.
  var keepsText: Bool {
    PQparameterStatus(raw, "server_encoding").map { ["UTF8", "SQL_ASCII"].contains(String(cString: $0)) } ?? true
  }

  /// A Boolean value that indicates whether the connection is lost or cannot be used any more.
  var isLost: Bool { isBroken || PQstatus(raw) == CONNECTION_BAD }

  /// A Boolean value that indicates whether a transaction was running at the end of the latest request, also one that
  /// has failed.
  var isInTransaction: Bool { PQtransactionStatus(raw) != PQTRANS_IDLE }

  /// The latest error of the connection.
  var error: PostgresError { Connection.error(of: raw) }

  // MARK: Sending

  /// Prepares one of Larder's statements, unless it is prepared.
  ///
  /// - Returns: The name, which is `nil` if the statement must be sent with its text, and whether it is prepared now.
  func prepare(_ statement: Statement) -> (name: String?, isNew: Bool) {
    let key = Data(statement.sql.utf8)
    if let name = prepared[key] { return (name, false) }
    guard prepared.count < Connection.preparedLimit else { return (nil, false) }
    lastPrepared += 1
    let name = "larder_\(token)_\(lastPrepared)"
    let types = statement.parameters.map { Oid($0.type) }
    check(PQsendPrepare(raw, name, statement.sql, Int32(types.count), types))
    prepared[key] = name
    return (name, true)
  }

  /// Forgets that a statement was prepared, because the server refused or skipped it.
  func forget(_ sql: String) {
    prepared[Data(sql.utf8)] = nil
  }

  /// Forgets all prepared statements.
  func forgetPreparations() { prepared = [:] }

  /// Adds a statement to what is sent.
  ///
  /// - Parameters:
  ///   - statement: The statement.
  ///   - name: The name of the prepared statement, or `nil` to send its text.
  func send(_ statement: Statement, named name: String?) {
    let parameters = statement.parameters
    let count = Int32(parameters.count)
    let lengths = parameters.map { Int32(clamping: $0.bytes?.count ?? 0) }
    let formats = parameters.map { $0.isText ? 0 : 1 as Int32 }
    let resultFormat: Int32 = statement.isPrepared ? 1 : 0
    withPointers(to: parameters) { pointers in
      if let name {
        check(PQsendQueryPrepared(raw, name, count, pointers, lengths, formats, resultFormat))
      } else {
        let types = parameters.map { Oid($0.type) }
        check(PQsendQueryParams(raw, statement.sql, count, types, pointers, lengths, formats, resultFormat))
      }
    }
  }

  /// Asks the server to send the results so far.
  func requestAnswers() { check(PQsendFlushRequest(raw)) }

  /// Ends a request.
  func synchronize() { check(PQpipelineSync(raw)) }

  private func check(_ status: Int32) {
    if status != 1 { isBroken = true }
  }

  /// Sends as much as the socket takes.
  ///
  /// - Returns: A Boolean value that indicates whether more is left.
  func flush() -> Bool {
    let status = PQflush(raw)
    if status < 0 { isBroken = true }
    return status > 0
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
  /// - Returns: A Boolean value that indicates whether the connection was not lost.
  func readAvailable() -> Bool {
    if PQconsumeInput(raw) != 1 { isBroken = true }
    return !isBroken
  }

  /// Returns the next answer, or `nil` if it has not arrived yet.
  func nextAnswer() -> Answer? {
    guard PQisBusy(raw) == 0 else { return nil }
    guard let result = PQgetResult(raw) else { return .end }
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
      return .failure(Connection.error(of: result, on: raw))
    }
  }

  /// Returns the next notification that has arrived, or `nil`.
  func nextNotification() -> ServerNotification? {
    guard let notification = PQnotifies(raw) else { return nil }
    defer { PQfreemem(notification) }
    return ServerNotification(
      channel: String(cString: notification.pointee.relname), isOwn: notification.pointee.be_pid == PQbackendPID(raw))
  }

  // MARK: Cancelling

  /// Asks the server to cancel the running statement, without waiting for it.
  func cancel() {
    let mayCancel = Connection.cancelCount.withLock { count in
      guard count < 8 else { return false }
      count += 1
      return true
    }
    guard mayCancel else { return }
    // The library never changes it after it was made, and only the thread uses it.
    nonisolated(unsafe) let request = PQgetCancel(raw)
    // The library connects again for it, and waits without a limit.
    Thread.detachNewThread {
      // The library sends it without a flag against this signal, which ends the process if the server is just going.
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
        // If it cannot be sent, the connection is given up soon.
        _ = PQcancel(request, message.baseAddress, Int32(message.count))
      }
      PQfreeCancel(request)
      Connection.cancelCount.withLock { $0 -= 1 }
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

/// A notification of a server.
struct ServerNotification: Sendable {
  var channel: String
  /// A Boolean value that indicates whether the connection that receives it has sent it.
  var isOwn: Bool
}
#endif
