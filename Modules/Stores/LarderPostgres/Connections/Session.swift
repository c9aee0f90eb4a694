#if Postgres
import CPostgres
import Foundation
import Larder

/// A session with a server: a connection, and the thread that sends and receives on it.
///
/// Requests are sent one behind another without waiting for answers, each with an end of its own, so that the failure of one
/// does not concern the others. The connection is made when the first request arrives, and made again after it was lost.
final class Session: Sendable {
  /// Statements that are sent together, and are one transaction unless one of them begins or ends a transaction.
  struct Request: Sendable {
    var statements: [Statement]

    /// A last statement, such as COMMIT.
    var ending: Statement?

    /// The numbers of statements after which the server sends the results so far, without waiting for the end of the
    /// request, so that they arrive even if the connection is lost later.
    var flushes: [Int] = []

    /// The connection whose transaction the request belongs to, or `nil` if any will do.
    var backend: Connection.Backend?
  }

  /// The outcome of a request.
  struct Response: Sendable {
    /// The results that arrived, one for each statement if there is no failure.
    var results: [QueryResult] = []
    var failure: Failure?

    /// The connection that the request was sent on.
    var backend: Connection.Backend?
  }

  enum Failure: Sendable {
    /// The server refused a statement. The transaction was rolled back.
    case refused(PostgresError)
    /// Nothing was sent, because no connection could be made, or because that of the transaction was lost.
    case notSent(PostgresError)
    /// The connection was lost after something was sent.
    case lost(PostgresError)
    /// No answer came within the time limit. The connection was given up.
    case timedOut

    /// The failure of the requests behind the first one.
    fileprivate var afterFirst: Failure {
      guard case .timedOut = self else { return self }
      return .lost(
        PostgresError(sqlState: "", message: "the connection was given up, because the server did not answer"))
    }
  }

  /// A request and the caller that waits for it.
  private struct PendingRequest: Sendable {
    let request: Request
    let continuation: CheckedContinuation<Response, Never>
  }

  private struct Inbox {
    var pending: [PendingRequest] = []
    var hasThread = false
    var isClosing = false

    /// Whether the connection must not be used any more.
    var mustDisconnect = false

    /// Whether the thread was told to look here and has not done so yet.
    var isSignalled = false
  }

  private let configuration: SessionConfiguration
  private let inbox = Locked(Inbox())
  private let wake: WakePipe

  /// A closure that is called with the channel of each notification.
  private let onNotification: @Sendable (_ channel: String) -> Void

  /// A closure that is called when a connection is lost.
  private let onLoss: @Sendable () -> Void

  /// Facts about the server, from the latest connection.
  private let facts = Locked(Facts())

  struct Facts: Sendable {
    var server: Connection.Server?
    var databaseName = ""
  }

  /// Creates a session without a connection.
  ///
  /// - Throws: ``PostgresError`` if the process has no file descriptors left.
  init(
    _ configuration: SessionConfiguration, onNotification: @escaping @Sendable (String) -> Void = { _ in },
    onLoss: @escaping @Sendable () -> Void = {}
  ) throws(PostgresError) {
    self.configuration = configuration
    self.onNotification = onNotification
    self.onLoss = onLoss
    wake = try WakePipe()
  }

  /// The facts that the server told when the session connected last.
  var knownFacts: Facts { facts.withLock { $0 } }

  /// The largest number of bytes of the parameters of a statement.
  ///
  /// A server ends the connection of a message above 1 GiB, which also contains the statement and the lengths.
  private static let parameterLimit = 1_000_000_000

  /// Sends a request and waits for its answers.
  ///
  /// A request with a statement that no server accepts is refused before anything is sent.
  func run(_ request: Request) async -> Response {
    if let error = Session.refusal(of: request.statements) {
      return Response(failure: .refused(error), backend: request.backend)
    }
    return await withCheckedContinuation { continuation in
      let (startsThread, signals) = inbox.withLock { inbox in
        inbox.pending.append(PendingRequest(request: request, continuation: continuation))
        defer { (inbox.hasThread, inbox.isSignalled) = (true, true) }
        return (!inbox.hasThread, inbox.hasThread && !inbox.isSignalled)
      }
      if startsThread { Thread.detachNewThread { self.serve() } }
      if signals { wake.signal() }
    }
  }

  /// Returns the error of a statement that is too large to be sent, or `nil`.
  ///
  /// - Parameters:
  ///   - statements: The statements of a request.
  ///   - limit: The largest number of bytes of the parameters of one. Defaults to what a server accepts.
  static func refusal(of statements: [Statement], limit: Int = parameterLimit) -> PostgresError? {
    for statement in statements {
      let size = statement.parameters.reduce(0) { $0 + ($1.bytes?.count ?? 0) }
      guard size > limit else { continue }
      return PostgresError(
        sqlState: "54000",
        message: "the call needs a statement of \(size) bytes, and a server accepts \(limit); write less in one call")
    }
    return nil
  }

  /// Ends the connection before the next request, which gets a new one.
  func disconnect() {
    inbox.withLock { $0.mustDisconnect = true }
  }

  /// Ends the session once the requests that were sent are answered.
  func close() {
    let signals = inbox.withLock { inbox in
      inbox.isClosing = true
      defer { inbox.isSignalled = true }
      return inbox.hasThread && !inbox.isSignalled
    }
    if signals { wake.signal() }
  }

  /// Takes what has arrived in the inbox.
  ///
  /// - Parameter isIdle: Whether no request waits for its answer.
  /// - Returns: The requests to send, and whether the thread must end.
  private func takePending(isIdle: Bool) -> (pending: [PendingRequest], mustEnd: Bool) {
    inbox.withLock { inbox in
      defer { (inbox.pending, inbox.isSignalled) = ([], false) }
      let mustEnd = inbox.isClosing && isIdle && inbox.pending.isEmpty
      // A later caller starts another thread.
      if mustEnd { inbox.hasThread = false }
      return (inbox.pending, mustEnd)
    }
  }

  private func takeDisconnection() -> Bool {
    inbox.withLock { inbox in
      defer { inbox.mustDisconnect = false }
      return inbox.mustDisconnect
    }
  }

  // MARK: The thread

  /// A request that was sent and not yet answered.
  private struct Sent {
    let pending: PendingRequest
    var expected: ArraySlice<Connection.Expected>
    var response: Response

    /// Whether the server has refused a statement before the commit.
    var isRefused = false

    /// The time until which the server must answer, from the moment at which the request is the first.
    var deadline: ContinuousClock.Instant
  }

  /// Serves the session until it is closed.
  private func serve() {
    var connection: Connection?
    var sent: [Sent] = []
    while true {
      let (pending, mustEnd) = takePending(isIdle: sent.isEmpty)
      if mustEnd { return }
      if sent.isEmpty, takeDisconnection() { connection = nil }
      var loss: PostgresError?
      for next in pending {
        do throws(PostgresError) {
          // Connecting again for each of them could take the time limit each time.
          if let loss { throw loss }
          try send(next, &connection, &sent)
        } catch {
          next.continuation.resume(returning: Response(failure: .notSent(error)))
          // Another transaction's connection is lost already.
          if next.request.backend == nil || next.request.backend == connection?.backend { loss = error }
        }
      }
      guard let failure = loss.map({ .lost($0) }) ?? exchange(connection, &sent) else { continue }
      for (index, request) in sent.enumerated() {
        var response = request.response
        // A transaction that was refused stays rolled back.
        if !request.isRefused { response.failure = index == 0 ? failure : failure.afterFirst }
        request.pending.continuation.resume(returning: response)
      }
      sent = []
      if connection != nil { onLoss() }
      connection = nil
    }
  }

  /// Sends a request, on a new connection if there is none.
  ///
  /// - Throws: ``PostgresError`` if nothing was sent. Unless the request belongs to another connection, this one is unusable.
  private func send(
    _ pending: PendingRequest, _ connection: inout Connection?, _ sent: inout [Sent]
  ) throws(PostgresError) {
    if let required = pending.request.backend, required != connection?.backend {
      throw PostgresError(sqlState: "", message: "the connection was lost during the transaction")
    }
    let live = if let connection { connection } else { try connect() }
    connection = live
    guard let expected = live.send(pending.request) else { throw live.lossError }
    sent.append(
      Sent(
        pending: pending, expected: expected[...], response: Response(backend: live.backend),
        deadline: .now + configuration.timeout + Session.grace))
  }

  /// The time by which the server is expected to end a statement by itself, before the connection is given up.
  private static let grace = Duration.seconds(1)

  private func connect() throws(PostgresError) -> Connection {
    let hosts: [SessionConfiguration.Host?] = configuration.hosts.isEmpty ? [nil] : configuration.hosts
    let deadline = ContinuousClock.now + configuration.timeout
    var failure: PostgresError?
    for (index, host) in hosts.enumerated() {
      let now = ContinuousClock.now
      let share = now + now.duration(to: deadline) / (hosts.count - index)
      do throws(PostgresError) {
        let connection = try Connection.connect(configuration, to: host) { socket, forWriting in
          wait(for: socket, forWriting ? Int16(POLLOUT) : Int16(POLLIN), deadline: share)
        }
        let new = Facts(server: connection.server, databaseName: connection.databaseName)
        facts.withLock { $0 = new }
        return connection
      } catch {
        failure = error
      }
    }
    throw failure ?? PostgresError(sqlState: "", message: "there is no host")
  }

  /// Waits for a socket alone.
  ///
  /// - Returns: Whether it is ready.
  private func wait(for socket: Int32, _ events: Int16, deadline: ContinuousClock.Instant) -> Bool {
    while true {
      var descriptor = pollfd(fd: socket, events: events, revents: 0)
      let ready = poll(&descriptor, 1, Session.milliseconds(until: deadline))
      if ready > 0 { return true }
      if ready == 0 || errno != EINTR { return false }
    }
  }

  /// Sends and receives once, after waiting for the socket or the inbox.
  ///
  /// - Returns: The failure that all requests meet if the connection is lost or given up, or `nil`.
  private func exchange(_ connection: Connection?, _ sent: inout [Sent]) -> Failure? {
    var descriptors = [pollfd(fd: wake.reader, events: Int16(POLLIN), revents: 0)]
    if let connection {
      guard let hasMore = connection.flush() else { return .lost(connection.lossError) }
      let events = Int16(POLLIN) | (hasMore ? Int16(POLLOUT) : 0)
      descriptors.append(pollfd(fd: connection.socket, events: events, revents: 0))
    }
    let limit = sent.first.map { Session.milliseconds(until: $0.deadline) } ?? -1
    let ready = poll(&descriptors, nfds_t(descriptors.count), limit)
    if ready > 0, descriptors[0].revents != 0 { wake.drain() }
    guard let connection else { return nil }
    if ready > 0, descriptors[1].revents != 0 {
      do throws(PostgresError) {
        try connection.readAvailable()
      } catch {
        // Answers that arrived before the end of the connection still count.
        receiveAnswers(connection, &sent)
        return .lost(error)
      }
    }
    receiveAnswers(connection, &sent)
    if connection.isLost { return .lost(connection.lossError) }
    if let first = sent.first, first.deadline <= .now { return .timedOut }
    return nil
  }

  /// Hands out the answers that have arrived.
  private func receiveAnswers(_ connection: Connection, _ sent: inout [Sent]) {
    var answeredCount = 0
    answers: while answeredCount < sent.count, let answer = connection.nextAnswer() {
      switch (sent[answeredCount].expected.first, answer) {
      case (.preparation, .result), (.poolerCheck, .result): break
      case (.rows, .result(let result)): sent[answeredCount].response.results.append(result)
      case (let expected, .failure(var error)):
        if case .preparation(let sql) = expected { connection.forget(sql) }
        if expected == .poolerCheck { error = .exchangedConnection }
        // A user's own SQL can drop prepared statements, and a table that was changed makes them useless.
        if error.concernsPreparation { connection.forgetPreparations() }
        if sent[answeredCount].response.failure == nil {
          sent[answeredCount].response.failure = .refused(error)
          // During the commit, the end of the connection leaves it open whether the transaction was committed.
          let isCommitting =
            sent[answeredCount].response.results.count >= sent[answeredCount].pending.request.statements.count
          let isOfServer = !error.sqlState.isEmpty
          sent[answeredCount].isRefused = isOfServer && (!isCommitting || !error.endsConnection)
        }
        if connection.isLost { break answers }
      case (.preparation(let sql), .skipped): connection.forget(sql)
      case (_, .skipped): break
      case (.rows, .end), (.preparation, .end), (.poolerCheck, .end):
        sent[answeredCount].expected.removeFirst()
      case (_, .end):
        // This follows an error of the commit, which the end of the request follows, unless the connection is lost.
        if connection.isLost { break answers }
      case (_, .synchronization):
        let request = sent[answeredCount]
        answeredCount += 1
        request.pending.continuation.resume(returning: request.response)
      case (nil, .result), (.synchronization, .result):
        break
      }
    }
    sent.removeFirst(answeredCount)
    if answeredCount > 0, !sent.isEmpty { sent[0].deadline = .now + configuration.timeout + Session.grace }
    while let channel = connection.nextNotification() { onNotification(channel) }
  }

  private static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
    let remaining = ContinuousClock.now.duration(to: deadline)
    return Int32(clamping: max(0, (remaining.microseconds + 999) / 1000))
  }
}

/// A pipe with which other threads wake one that waits for a socket.
private final class WakePipe: Sendable {
  let reader: Int32
  private let writer: Int32

  init() throws(PostgresError) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw PostgresError(sqlState: "", message: "no pipe can be made: \(String(cString: strerror(errno)))")
    }
    (reader, writer) = (ends[0], ends[1])
    for end in ends {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
  }

  deinit {
    close(reader)
    close(writer)
  }

  func signal() {
    // A pipe that is full wakes the reader as well.
    _ = withUnsafeBytes(of: 0 as UInt8) { write(writer, $0.baseAddress, 1) }
  }

  func drain() {
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
      while read(reader, buffer.baseAddress, buffer.count) == buffer.count {}
    }
  }
}
#endif
