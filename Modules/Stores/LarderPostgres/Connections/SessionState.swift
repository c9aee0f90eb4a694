#if Postgres
import Larder

/// The connection of a session and its requests, which one thread at a time changes.
struct SessionState {
  /// The consequences of a change, which are carried out outside of the lock.
  struct Effects: Sendable {
    /// The time limit of the session.
    let timeout: Duration

    var finished: [(CheckedContinuation<Response, Never>, Response)] = []
    var notifications: [ServerNotification] = []

    /// A Boolean value that indicates whether a request is left to be sent that the socket does not take now.
    var mustSend = false

    /// The time when the running request must have ended.
    var deadline: ContinuousClock.Instant?

    /// Why the connection was lost, if it was lost now.
    var loss: PostgresError?
  }

  /// The number of bytes of a request above which another thread sends it.
  private static let largeSize = 1 << 20

  /// The time by which the server is expected to end a statement by itself, before the connection is given up.
  private static let grace = Duration.seconds(1)

  let connection: Connection
  private var running: Exchange?
  private var waiting: [Exchange] = []
  var lastNumber = 0
  var facts = Session.Facts()

  /// A statement that fails if the session is not the one that was set up, or `nil` without a pooler.
  ///
  /// A pooler that exchanges connections between transactions would run statements with the settings of other programs.
  var poolerCheck: Statement?

  /// Why the connection cannot be used any more.
  private(set) var loss: PostgresError?

  /// A Boolean value that indicates whether SQL of the user may have changed the session.
  var mustReset = false

  init(connection: Connection) {
    self.connection = connection
  }

  /// Adds a request behind earlier ones.
  mutating func add(_ exchange: Exchange, isCancelled: Bool, _ effects: inout Effects) {
    if let loss {
      exchange.refuse(loss, &effects)
    } else if isCancelled {
      exchange.refuse(.cancellation, &effects)
    } else if !exchange.request.isAllowed() {
      exchange.refuse(PostgresError(sqlState: "25000", message: "the transaction has ended"), &effects)
    } else {
      waiting.append(exchange)
    }
  }

  /// Cancels a request whose task was cancelled.
  mutating func cancel(_ number: Int, _ effects: inout Effects) {
    if let index = waiting.firstIndex(where: { $0.number == number }) {
      waiting.remove(at: index).refuse(.cancellation, &effects)
    } else if running?.number == number {
      end()
    }
  }

  /// Takes what has arrived.
  mutating func read(_ effects: inout Effects) {
    guard loss == nil, connection.readAvailable() else { return }
    if running?.request.isCancellable == true { running?.extend(by: effects.timeout) }
  }

  /// Sends more of the running request.
  ///
  /// - Returns: The time until which the socket must take more, or `nil` if nothing is left to be sent.
  mutating func sendMore(_ timeout: Duration) -> ContinuousClock.Instant? {
    let connection = connection
    guard loss == nil, let isSent = running?.send(on: connection), !isSent, !connection.isLost else { return nil }
    // A slow line that moves bytes is not a dead one.
    running?.extend(by: timeout)
    return running?.deadline
  }

  /// Does all that can be done without waiting.
  mutating func advance(_ effects: inout Effects) {
    // A constant of its own, because each call below changes the request that is running.
    let connection = connection
    while loss == nil {
      if running == nil {
        guard !waiting.isEmpty, !connection.isLost else { break }
        start(waiting.removeFirst(), &effects)
      } else if running?.receive(from: connection) == true {
        finish(&effects)
      } else if connection.isLost {
        // Answers that arrived before the end of the connection count.
        break
      } else {
        if let running, running.deadline <= .now {
          if running.isEnding { lose(.late, timesOut: true, &effects) } else { end() }
        }
        break
      }
    }
    if loss == nil, connection.isLost { lose(connection.error, &effects) }
    while let next = connection.nextNotification() { effects.notifications.append(next) }
    effects.deadline = running?.deadline
  }

  private mutating func start(_ exchange: Exchange, _ effects: inout Effects) {
    guard exchange.deadline > .now else {
      exchange.refuse(.late, &effects)
      return
    }
    let connection = connection
    running = exchange
    // A transaction is not exchanged before its end.
    if !connection.isInTransaction { running?.check = poolerCheck }
    effects.mustSend = exchange.request.size > SessionState.largeSize || running?.send(on: connection) == false
  }

  /// Ends the running request that has taken too long or is cancelled.
  private mutating func end() {
    guard running?.isEnding == false else { return }
    running?.isEnding = true
    running?.deadline = .now + SessionState.grace
    // The server limits the time of others by itself.
    if running?.request.isCancellable == true { connection.cancel() }
  }

  private mutating func finish(_ effects: inout Effects) {
    guard let exchange = running else { return }
    running = nil
    var response = exchange.response
    response.isInTransaction = connection.isInTransaction
    effects.finished.append((exchange.continuation, response))
    // A request to cancel can arrive after the answer, and would meet the next statement.
    if exchange.isEnding, exchange.request.isCancellable { lose(.cancellation, &effects) }
  }

  /// Gives up the connection.
  ///
  /// - Parameters:
  ///   - error: The reason.
  ///   - timesOut: A Boolean value that indicates whether the running request was not answered in time. Defaults to
  ///     `false`.
  ///   - effects: What follows.
  mutating func lose(_ error: PostgresError, timesOut: Bool = false, _ effects: inout Effects) {
    guard loss == nil else { return }
    (loss, effects.loss) = (error, error)
    if let exchange = running {
      var response = exchange.response
      // A transaction that was refused stays rolled back.
      if !exchange.isRefused {
        response.failure = timesOut ? .timedOut : exchange.isSent ? .lost(error) : .notSent(error)
      }
      effects.finished.append((exchange.continuation, response))
      running = nil
    }
    for exchange in waiting { exchange.refuse(error, &effects) }
    waiting = []
  }
}
#endif
