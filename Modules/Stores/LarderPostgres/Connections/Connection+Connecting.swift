#if Postgres
import CPostgres
import Foundation
import Larder

/// Making connections.
extension Connection {
  /// Connects to one of the hosts, and blocks the thread.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - deadline: The time until which one of the hosts must answer.
  /// - Throws: ``PostgresError``.
  static func connect(
    _ configuration: SessionConfiguration, until deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> sending Connection {
    let options = ConnectionOptions.effective(for: configuration.connection)
    let limit = options["connect_timeout"].flatMap { Int($0) }.flatMap { $0 > 0 ? Duration.seconds($0) : nil }
    let hosts = Host.all(of: options)
    var failure = lateError
    // Each host gets its share of the time, and each of its addresses a share of that.
    for (index, host) in hosts.enumerated() {
      let addresses = host.resolved()
      let end = ContinuousClock.now + ContinuousClock.now.duration(to: deadline) / (hosts.count - index)
      for (index, address) in addresses.enumerated() {
        let share = ContinuousClock.now.duration(to: end) / (addresses.count - index)
        do throws(PostgresError) {
          return try connect(configuration, to: address, until: .now + min(share, limit ?? share))
        } catch {
          failure = error
        }
      }
    }
    throw failure
  }

  private static func connect(
    _ configuration: SessionConfiguration, to host: Host, until deadline: ContinuousClock.Instant
  ) throws(PostgresError) -> sending Connection {
    // A later keyword replaces an earlier one, and `dbname` stands for all that the user's text contains. The intervals of
    // TCP, in seconds and milliseconds, find a server that has disappeared.
    let milliseconds = String(max(1, configuration.timeout.wholeMicroseconds / 1000))
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
    var isMade = false
    defer { if !isMade { PQfinish(raw) } }
    guard PQstatus(raw) != CONNECTION_BAD else { throw connectError(raw) }
    var status = PGRES_POLLING_WRITING
    while status != PGRES_POLLING_OK {
      let event = Int16(status == PGRES_POLLING_WRITING ? POLLOUT : POLLIN)
      var descriptor = [pollfd(fd: PQsocket(raw), events: event, revents: 0)]
      guard poll(&descriptor, until: deadline) > 0 else { throw lateError }
      status = PQconnectPoll(raw)
      if status == PGRES_POLLING_FAILED { throw connectError(raw) }
    }
    PQsetErrorVerbosity(raw, PQERRORS_DEFAULT)
    isMade = true
    return try Connection(raw)
  }

  static var lateError: PostgresError {
    PostgresError(sqlState: "", message: "the connection was not made within the time limit")
  }

  private static func connectError(_ connection: OpaquePointer) -> PostgresError {
    guard PQconnectionNeedsPassword(connection) == 0 else {
      return PostgresError(sqlState: "28P01", message: "the server asks for a password, but none was given")
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
#endif
