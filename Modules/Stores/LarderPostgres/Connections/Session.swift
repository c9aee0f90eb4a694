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
    /// A first statement such as BEGIN, whose result is not needed.
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

    var isEmpty: Bool { statements.isEmpty && beginning == nil && ending == nil }
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
  struct PendingRequest: Sendable {
    let number: Int
    let request: Request
    let deadline: ContinuousClock.Instant
    let continuation: CheckedContinuation<Response, Never>
  }

  struct Inbox {
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

  let configuration: SessionConfiguration
  let inbox = Locked(Inbox())
  let wake: WakePipe

  /// A closure that is called with the channel of each notification.
  let onNotification: @Sendable (_ channel: String) -> Void

  /// A closure that is called when a connection is lost.
  let onLoss: @Sendable () -> Void

  /// Facts about the server, from the latest connection.
  let facts = Locked(Facts())

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
      let size = statement.size
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
}
#endif
