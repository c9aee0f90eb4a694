#if Postgres
import Foundation
import Larder

/// A session with a server: a connection that several tasks can use, until it is lost.
///
/// A caller sends its request by itself, and the thread of a ``Poller`` receives the answers. Requests are served one after
/// another. A connection that is lost is not made again.
final class Session: Sendable {
  /// The facts that the server told when the session was set up.
  ///
  /// With the first three, the outcome of its transactions can be found later.
  struct Facts: Sendable {
    /// The process on the server.
    var process: Int32 = 0
    /// When that process started, as text of the server, because the numbers of processes are used again.
    var start = ""
    /// The identity of the data, or an empty string if the server does not tell.
    ///
    /// It changes when another server takes over, and when the server recovers from a crash, because the numbers of lost
    /// transactions are then used again.
    var dataIdentity = ""
    /// The part of the identity that tells servers apart, without the time of the statistics, which a user can reset.
    var serverIdentity: Substring {
      let end = dataIdentity.lastIndex(of: "/") ?? dataIdentity.startIndex
      return dataIdentity[..<end]
    }
    /// A Boolean value that indicates whether a commit survives power failure on the server.
    var isSynced = false
    /// A Boolean value that indicates whether a commit waits for another server.
    var isReplicated = false
    /// A Boolean value that indicates whether the encoding of the database keeps every character.
    var keepsText = true
    var databaseName = ""
  }

  /// The descriptor of the connection, which stays open as long as the session exists.
  let socket: Int32

  let configuration: SessionConfiguration
  private let poller: Poller
  private let onNotification: @Sendable (ServerNotification) -> Void
  private let onLoss: @Sendable (Session, PostgresError) -> Void
  private let state: Locked<SessionState>

  /// Creates a session, which must be set up.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - configuration: The configuration.
  ///   - poller: The poller. It watches the session until it is lost.
  ///   - onNotification: A closure that is called with each notification.
  ///   - onLoss: A closure that is called once, when the connection cannot be used any more.
  init(
    _ connection: sending Connection, _ configuration: SessionConfiguration, _ poller: Poller,
    onNotification: @escaping @Sendable (ServerNotification) -> Void,
    onLoss: @escaping @Sendable (Session, PostgresError) -> Void
  ) {
    socket = connection.socket
    self.configuration = configuration
    self.poller = poller
    self.onNotification = onNotification
    self.onLoss = onLoss
    state = Locked(SessionState(connection: connection))
    poller.add(self)
  }

  /// The facts that the server told when the session was set up.
  var facts: Facts { state.withLock { $0.facts } }

  /// A Boolean value that indicates whether the connection cannot be used any more.
  var isLost: Bool { state.withLock { $0.loss != nil } }

  /// Calls a closure with the state that no other thread uses at that time.
  func withState<Result: Sendable>(_ body: (inout SessionState) -> Result) -> Result {
    state.withLock { body(&$0) }
  }

  // MARK: Requests

  /// Sends a request and waits for its answers.
  ///
  /// A request with a statement that no server accepts is refused before anything is sent.
  func run(_ request: Request) async -> Response {
    if let error = Request.refusal(of: request.statements) { return Response(failure: .refused(error)) }
    let deadline = request.deadline ?? .now + configuration.timeout
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let exchange = Exchange(number, request, deadline, continuation)
        // If the task was cancelled before this moment, nothing would end its wait.
        perform { $0.add(exchange, isCancelled: request.isCancellable && Task.isCancelled, &$1) }
      }
    } onCancel: {
      if request.isCancellable { perform { $0.cancel(number, &$1) } }
    }
  }

  /// Takes what has arrived.
  func receive() { perform { $0.read(&$1) } }

  /// Ends a request that takes too long.
  func look() { perform { _, _ in } }

  /// Ends the connection.
  ///
  /// - Parameter error: The reason. Defaults to that its user wants it.
  func close(because error: PostgresError = PostgresError(sqlState: "", message: "the connection was closed")) {
    perform { $0.lose(error, &$1) }
  }

  /// Changes the state, and does all that can be done without waiting.
  private func perform(_ change: (inout SessionState, inout SessionState.Effects) -> Void) {
    let effects = state.withLock { state in
      var effects = SessionState.Effects(timeout: configuration.timeout)
      change(&state, &effects)
      state.advance(&effects)
      return effects
    }
    if let loss = effects.loss {
      poller.remove(self)
      onLoss(self, loss)
    }
    for (continuation, response) in effects.finished { continuation.resume(returning: response) }
    for notification in effects.notifications { onNotification(notification) }
    if let deadline = effects.deadline { poller.look(by: deadline) }
    // The library copies and moves a large request often, which would hold up the caller's thread and the answers to others.
    if effects.mustSend { Thread.detachNewThread { self.sendRest() } }
  }

  /// Sends the rest of the running request, as long as the line moves bytes.
  private func sendRest() {
    while let deadline = state.withLock({ $0.sendMore(configuration.timeout) }) {
      var descriptors = [pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)]
      _ = poll(&descriptors, until: deadline)
    }
    // Sending may have failed.
    look()
  }
}
#endif
