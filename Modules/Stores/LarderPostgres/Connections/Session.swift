#if Postgres
import CPostgres
import Foundation
import Larder

/// A session with a server: a connection, and the thread that sends and receives on it.
///
/// Requests are served one after another. The connection is made when the first request arrives, and made again after it
/// was lost.
final class Session: Sendable {
  /// Statements that are sent together, and are one transaction unless one of them begins or ends a transaction.
  struct Request: Sendable {
    /// A first statement such as BEGIN, whose result nobody needs.
    var beginning: Statement?

    /// The statements; without any, the session only connects.
    var statements: [Statement] = []

    /// A last statement such as COMMIT.
    var ending: Statement?

    /// The numbers of statements after which the server sends the results so far, without waiting for the end of the
    /// request, so that they arrive even if the connection is lost later.
    var flushes: [Int] = []

    /// The connection whose transaction the request belongs to, or `nil` if any will do.
    var backend: Connection.Backend?

    /// The time at which the server must have answered, or `nil` for the time limit from now.
    var deadline: ContinuousClock.Instant?

    /// Whether the statements are cancelled at the deadline, or when the task is cancelled.
    ///
    /// The server limits the time of writes by itself. It would report a commit as finished that was cancelled while it waited
    /// for another server.
    var isCancellable = false

    /// Returns whether the request may still be sent, when it takes its place behind earlier ones.
    var isAllowed: @Sendable () -> Bool = { true }

    /// Whether the session is set up anew after the answer, because SQL of the user may have changed it.
    var resets = false

    fileprivate var isEmpty: Bool { statements.isEmpty && beginning == nil && ending == nil }
  }

  /// The outcome of a request.
  struct Response: Sendable {
    /// The results that arrived, one for each statement if there is no failure.
    var results: [QueryResult] = []
    var failure: Failure?

    /// The connection that the request was sent on.
    var backend: Connection.Backend?

    /// Whether a transaction is running afterwards.
    var isInTransaction = false
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
  }

  /// A request and the caller that waits for it.
  private struct PendingRequest: Sendable {
    let number: Int
    let request: Request
    let deadline: ContinuousClock.Instant
    let continuation: CheckedContinuation<Response, Never>
  }

  private struct Inbox {
    var pending: [PendingRequest] = []
    var lastNumber = 0
    var hasThread = false
    var isClosing = false

    /// Whether there is a connection.
    var isConnected = false

    /// Whether the connection must not be used any more.
    var mustDisconnect = false

    /// The requests whose tasks were cancelled.
    var cancelled: Set<Int> = []

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
    /// How often the session has connected.
    var connectCount = 0
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

  /// Whether there is a connection, as far as the session knows.
  var isConnected: Bool { inbox.withLock { $0.isConnected } }

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
    let deadline = request.deadline ?? .now + configuration.timeout
    let number = inbox.withLock { inbox in
      inbox.lastNumber += 1
      return inbox.lastNumber
    }
    guard request.isCancellable else { return await answer(to: request, number, deadline) }
    return await withTaskCancellationHandler {
      await answer(to: request, number, deadline)
    } onCancel: {
      signal { _ = $0.cancelled.insert(number) }
    }
  }

  private func answer(to request: Request, _ number: Int, _ deadline: ContinuousClock.Instant) async -> Response {
    await withCheckedContinuation { continuation in
      let pending = PendingRequest(number: number, request: request, deadline: deadline, continuation: continuation)
      let startsThread = signal { inbox -> Bool? in
        guard request.isAllowed() else { return nil }
        inbox.pending.append(pending)
        defer { inbox.hasThread = true }
        return !inbox.hasThread
      }
      switch startsThread {
      case nil:
        let error = PostgresError(sqlState: "25000", message: "the transaction has ended")
        continuation.resume(returning: Response(failure: .notSent(error)))
      case true?: Thread.detachNewThread { self.serve() }
      case false?: break
      }
    }
  }

  /// Changes the inbox, and tells the thread to look at it.
  @discardableResult
  private func signal<Result>(_ change: (inout Inbox) -> Result) -> Result {
    let (result, signals) = inbox.withLock { inbox in
      let signals = inbox.hasThread && !inbox.isSignalled
      if signals { inbox.isSignalled = true }
      return (change(&inbox), signals)
    }
    if signals { wake.signal() }
    return result
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
    inbox.withLock { ($0.mustDisconnect, $0.isConnected) = (true, false) }
  }

  /// Ends the session once its requests are answered.
  func close() {
    signal { $0.isClosing = true }
  }

  // MARK: The thread

  /// What the thread does next.
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
  private func serve() {
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
    guard var expected = live.send(request) else {
      // A part may be on its way.
      return (Response(failure: request.ending == nil ? .notSent(live.lossError) : .lost(live.lossError)), false)
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
      switch exchange(live, until: deadline, isReading: request.isCancellable) {
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
    inbox.withLock { inbox in
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

  private enum Event {
    /// Bytes of values were sent or received.
    case moved
    /// The time has passed, or there is something in the inbox.
    case woken
    case lost(PostgresError)
  }

  /// Sends and receives once, after waiting for the socket or the inbox.
  private func exchange(
    _ connection: Connection, until deadline: ContinuousClock.Instant, isReading: Bool
  ) -> Event {
    guard !connection.isLost, let hasMore = connection.flush() else { return .lost(connection.lossError) }
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
