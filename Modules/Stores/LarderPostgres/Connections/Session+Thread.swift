#if Postgres
import Foundation
import Larder

/// The thread of a session, which sends and receives.
extension Session {
  /// The next step of the thread.
  private enum Step {
    case serve(PendingRequest)
    case wait
    case end
  }

  private func nextStep() -> Step {
    inbox.withLock { inbox in
      inbox.isSignalled = false
      if !inbox.pending.isEmpty { return .serve(inbox.pending.removeFirst()) }
      guard inbox.isClosing else { return .wait }
      // A later caller starts another thread.
      (inbox.hasThread, inbox.isConnected) = (false, false)
      return .end
    }
  }

  private func mustDisconnect() -> Bool {
    inbox.withLock { inbox in
      defer { inbox.mustDisconnect = false }
      return inbox.mustDisconnect
    }
  }

  /// Serves the session until it is closed.
  func serve() {
    var connection: Connection?
    func lose() {
      guard connection != nil else { return }
      connection = nil
      inbox.withLock { $0.isConnected = false }
      onLoss()
    }
    while true {
      switch nextStep() {
      case .end: return
      case .wait:
        if !idle(connection) { lose() }
      case .serve(let pending):
        if mustDisconnect() { connection = nil }
        let (response, isUsable) = serve(pending, &connection)
        if !isUsable { lose() }
        pending.continuation.resume(returning: response)
        if pending.request.resets, let live = connection, !reset(live) { lose() }
      }
    }
  }

  /// Waits for a request, while notifications arrive.
  ///
  /// - Returns: Whether the connection, if there is one, can still be used.
  private func idle(_ connection: Connection?) -> Bool {
    var descriptors = [pollfd(fd: wake.reader, events: Int16(POLLIN), revents: 0)]
    if let connection { descriptors.append(pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0)) }
    _ = poll(&descriptors, until: nil)
    if descriptors[0].revents != 0 { wake.drain() }
    guard let connection, descriptors[1].revents != 0 else { return true }
    do throws(PostgresError) { try connection.readAvailable() } catch { return false }
    while let channel = connection.nextNotification() { onNotification(channel) }
    return !connection.isLost
  }

  private func reset(_ connection: Connection) -> Bool {
    do throws(PostgresError) {
      try connection.reset(configuration, until: .now + configuration.timeout)
      return true
    } catch {
      // The next request gets a new connection.
      return false
    }
  }

  /// The time by which the server is expected to end a statement by itself, before the connection is given up.
  private static let grace = Duration.seconds(1)

  /// Sends a request, on a new connection if there is none, and receives its answers.
  ///
  /// - Returns: The response, and whether the connection can still be used.
  private func serve(_ pending: PendingRequest, _ connection: inout Connection?) -> (Response, isUsable: Bool) {
    let request = pending.request
    if let required = request.backend, required != connection?.backend {
      let error = PostgresError(sqlState: "", message: "the connection was lost during the transaction")
      return (Response(failure: .notSent(error)), true)
    }
    guard pending.deadline > .now else {
      let error = PostgresError(sqlState: "57014", message: "nothing was sent within the time limit")
      return (Response(failure: .notSent(error)), true)
    }
    let live: Connection
    do throws(PostgresError) {
      live = if let connection { connection } else { try connect(until: pending.deadline) }
    } catch {
      return (Response(failure: .notSent(error)), false)
    }
    connection = live
    var response = Response(backend: live.backend)
    if request.isEmpty { return (response, true) }
    guard var expected = live.send(request, drain: { drain(live) }) else {
      return (Response(failure: .notSent(live.lossError)), false)
    }
    var isRefused = false
    var deadline = pending.deadline
    var isCancelled = false
    while true {
      if receive(&expected, &response, &isRefused, of: request, on: live) {
        response.isInTransaction = live.isInTransaction
        // A request to cancel can arrive after the answer, and would meet the next statement.
        return (response, !live.isLost && !(isCancelled && request.isCancellable))
      }
      if !isCancelled, deadline <= .now || isTaskCancelled(of: pending) {
        isCancelled = true
        deadline = .now + Session.grace
        if request.isCancellable { live.cancel() }
      }
      var failure: Failure?
      let event = live.flush().map { exchange(live, sends: $0, until: deadline, isReading: request.isCancellable) }
      switch event ?? .lost(live.lossError) {
      case .moved:
        // A slow line that moves bytes is not a dead one.
        if !isCancelled { deadline = max(deadline, .now + configuration.timeout) }
      case .woken: if isCancelled, deadline <= .now { failure = .timedOut }
      case .lost(let error):
        // Answers that arrived before the end of the connection still count.
        if receive(&expected, &response, &isRefused, of: request, on: live) { return (response, false) }
        failure = .lost(error)
      }
      guard let failure else { continue }
      // A transaction that was refused stays rolled back.
      if !isRefused { response.failure = failure }
      return (response, false)
    }
  }

  private func isTaskCancelled(of pending: PendingRequest) -> Bool {
    guard pending.request.isCancellable else { return false }
    return inbox.withLock { inbox in
      // The numbers of earlier requests may have arrived after their ends.
      inbox.cancelled = inbox.cancelled.filter { $0 >= pending.number }
      return inbox.cancelled.contains(pending.number)
    }
  }

  private func connect(until deadline: ContinuousClock.Instant) throws(PostgresError) -> Connection {
    let connection = try Connection.connect(configuration, until: deadline)
    facts.withLock { facts in
      let count = facts.connectCount + 1
      facts = Facts(server: connection.server, databaseName: connection.databaseName, connectCount: count)
    }
    inbox.withLock { $0.isConnected = true }
    return connection
  }

  /// Sends all that was added, as long as the line moves bytes.
  private func drain(_ connection: Connection) -> Bool {
    while let hasMore = connection.flush() {
      guard hasMore else { return true }
      let deadline = ContinuousClock.now + configuration.timeout
      switch exchange(connection, sends: true, until: deadline, isReading: false) {
      case .moved: break
      case .woken: if deadline <= .now { return false }
      case .lost: return false
      }
    }
    return false
  }

  private enum Event {
    /// Bytes of values were sent or received.
    case moved
    /// The time has passed, or there is something in the inbox.
    case woken
    case lost(PostgresError)
  }

  /// Waits for the socket or the inbox, and receives.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - hasMore: Whether bytes are left to send.
  ///   - deadline: The time until which it waits.
  ///   - isReading: Whether bytes that arrive are those of values.
  private func exchange(
    _ connection: Connection, sends hasMore: Bool, until deadline: ContinuousClock.Instant, isReading: Bool
  ) -> Event {
    if connection.isLost { return .lost(connection.lossError) }
    var descriptors = [
      pollfd(fd: connection.socket, events: Int16(POLLIN) | (hasMore ? Int16(POLLOUT) : 0), revents: 0),
      pollfd(fd: wake.reader, events: Int16(POLLIN), revents: 0),
    ]
    guard poll(&descriptors, until: deadline) > 0 else { return .woken }
    if descriptors[1].revents != 0 {
      // In this order, so that no signal is lost.
      wake.drain()
      inbox.withLock { $0.isSignalled = false }
    }
    guard descriptors[0].revents != 0 else { return .woken }
    do throws(PostgresError) { try connection.readAvailable() } catch { return .lost(error) }
    return hasMore || isReading ? .moved : .woken
  }

  /// Takes the answers that have arrived.
  ///
  /// - Returns: Whether the last one is there.
  private func receive(
    _ expected: inout ArraySlice<Connection.Expected>, _ response: inout Response, _ isRefused: inout Bool,
    of request: Request, on connection: Connection
  ) -> Bool {
    while let answer = connection.nextAnswer() {
      switch (expected.first, answer) {
      case (.rows, .result(let result)): response.results.append(result)
      case (let next, .failure(var error)):
        if case .preparation(let sql) = next { connection.forget(sql) }
        if next == .poolerCheck { error = .exchangedConnection }
        // A user's own SQL can drop prepared statements, and a table that was changed makes them useless.
        if error.concernsPreparation { connection.forgetPreparations() }
        if response.failure == nil {
          response.failure = .refused(error)
          // During the commit, the end of the connection leaves it open whether the transaction was committed.
          let isCommitting = response.results.count >= request.statements.count
          isRefused = !error.sqlState.isEmpty && (!isCommitting || !error.endsConnection)
        }
        if connection.isLost { return false }
      case (.preparation(let sql), .skipped): connection.forget(sql)
      case (.rows, .end), (.preparation, .end), (.beginning, .end), (.poolerCheck, .end): expected.removeFirst()
      case (_, .synchronization):
        while let channel = connection.nextNotification() { onNotification(channel) }
        return true
      case (_, .end):
        // This follows an error of the commit, which the end of the request follows, unless the connection is lost.
        if connection.isLost { return false }
      case (_, .result), (_, .skipped): break
      }
    }
    return false
  }
}

/// A pipe with which other threads wake one that waits for a socket.
final class WakePipe: Sendable {
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
