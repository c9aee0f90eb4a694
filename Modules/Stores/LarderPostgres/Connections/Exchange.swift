#if Postgres
import Larder

/// Statements that are sent together, and are one transaction unless one of them begins or ends a transaction.
struct Request: Sendable {
  var statements: [Statement]

  /// A Boolean value that indicates whether the last statement commits.
  var endsWithCommit = false

  /// The numbers of statements after which the server sends the results so far, without waiting for the end of the
  /// request, so they arrive even if the connection is lost later.
  var flushes: [Int] = []

  /// The time when the server must have answered, or `nil` for the time limit from now.
  var deadline: ContinuousClock.Instant?

  /// A Boolean value that indicates whether the statements are cancelled at the deadline, or when the task is
  /// cancelled.
  ///
  /// The server limits the time of writes by itself. It would report a commit as finished that was cancelled while it waited
  /// for another server.
  var isCancellable = false

  /// Returns whether the request may still be sent, when it takes its place behind earlier ones.
  var isAllowed: @Sendable () -> Bool = { true }

  /// The number of bytes of the parameters.
  var size: Int { statements.reduce(0) { $0 + $1.size } }

  /// The largest number of bytes of the parameters of a statement.
  ///
  /// A server ends the connection of a message above 1 GiB, which also contains the statement and the lengths.
  private static let parameterLimit = 1_000_000_000

  /// Returns the error of a statement that is too large to be sent, or `nil`.
  ///
  /// - Parameters:
  ///   - statements: The statements of a request.
  ///   - limit: The largest number of bytes of the parameters of one. Defaults to what a server accepts.
  static func refusal(of statements: [Statement], limit: Int = parameterLimit) -> PostgresError? {
    guard let size = statements.lazy.map(\.size).first(where: { $0 > limit }) else { return nil }
    return PostgresError(
      sqlState: "54000",
      message: "the call needs a statement of \(size) bytes, and a server accepts \(limit); write less in one call")
  }
}

/// The outcome of a request.
struct Response: Sendable {
  enum Failure: Sendable {
    /// The server refused a statement. The transaction was rolled back.
    case refused(PostgresError)
    /// Not all was sent, so nothing has changed.
    case notSent(PostgresError)
    /// The connection was lost after all was sent.
    case lost(PostgresError)
    /// No answer came within the time limit. The connection was given up.
    case timedOut
  }

  /// The results that arrived, one for each statement if there is no failure.
  var results: [QueryResult] = []

  var failure: Failure?

  /// A Boolean value that indicates whether a transaction is running afterward.
  var isInTransaction = false
}

/// A request on its way, and the answers that have arrived.
struct Exchange: Sendable {
  /// An answer that the server owes for what was sent.
  private enum Expected: Equatable {
    /// That the connection of the server is still the same.
    case check
    /// That a statement was prepared.
    case preparation(sql: String)
    /// The rows of a statement.
    case rows
  }

  let number: Int
  let request: Request
  let continuation: CheckedContinuation<Response, Never>
  var deadline: ContinuousClock.Instant

  /// A statement that is sent first, without which the others must not be run.
  var check: Statement?

  /// A Boolean value that indicates whether the request was cancelled, or has only a short time left.
  var isEnding = false

  private(set) var response = Response()

  /// A Boolean value that indicates whether the transaction is known to be rolled back.
  private(set) var isRefused = false

  /// The names of the prepared statements, once they are prepared.
  private var names: [String?] = []

  private var sentCount = 0
  private var expected: ArraySlice<Expected> = []

  init(
    _ number: Int, _ request: Request, _ deadline: ContinuousClock.Instant,
    _ continuation: CheckedContinuation<Response, Never>
  ) {
    (self.number, self.request, self.deadline, self.continuation) = (number, request, deadline, continuation)
  }

  /// A Boolean value that indicates whether all was sent.
  ///
  /// Before that, the server has not got what ends the transaction.
  var isSent: Bool { sentCount == request.statements.count }

  /// Moves the deadline, because bytes were moved.
  mutating func extend(by timeout: Duration) {
    if !isEnding { deadline = max(deadline, .now + timeout) }
  }

  /// Tells the caller that nothing was sent.
  func refuse(_ error: PostgresError, _ effects: inout SessionState.Effects) {
    effects.finished.append((continuation, Response(failure: .notSent(error))))
  }

  /// Sends as much as the socket takes.
  ///
  /// - Returns: A Boolean value that indicates whether nothing is left that can be sent; the connection may be lost.
  mutating func send(on connection: Connection) -> Bool {
    if let check {
      connection.send(check, named: nil)
      expected.append(.check)
      self.check = nil
    }
    while !isSent, !connection.isLost {
      let statement = request.statements[sentCount]
      if statement.isPrepared, names.isEmpty { prepare(on: connection) }
      // The library moves all that is left after each part that it has sent, so each large statement waits for the former.
      if statement.isLarge, connection.flush() { return false }
      connection.send(statement, named: names.isEmpty ? nil : names[sentCount])
      expected.append(.rows)
      sentCount += 1
      if request.flushes.contains(sentCount) { connection.requestAnswers() }
      if isSent { connection.synchronize() }
    }
    return !connection.flush()
  }

  /// Prepares the statements that are not prepared, behind those at the beginning that need not be.
  ///
  /// Nothing may precede a BEGIN with an isolation. But all are prepared before the first of them is sent, because that may
  /// limit the time of the later ones: the server counts from the preparation on, also while the parameters arrive over a slow
  /// line.
  private mutating func prepare(on connection: Connection) {
    names = request.statements.map { statement in
      guard statement.isPrepared else { return nil }
      let (name, isNew) = connection.prepare(statement)
      if isNew { expected.append(.preparation(sql: statement.sql)) }
      return name
    }
  }

  /// Takes the answers that have arrived.
  ///
  /// - Returns: A Boolean value that indicates whether the last one is there.
  mutating func receive(from connection: Connection) -> Bool {
    // The library reports an end again and again while the server owes nothing.
    while isSent || !expected.isEmpty, let answer = connection.nextAnswer() {
      switch (expected.first, answer) {
      case (.rows, .result(let result)): response.results.append(result)
      case (let next, .failure(let error)):
        if case .preparation(let sql) = next { connection.forget(sql) }
        fail(next == .check ? .exchangedConnection : error, on: connection)
        if connection.isLost { return false }
      case (.preparation(let sql), .skipped): connection.forget(sql)
      case (_, .synchronization): return true
      case (_, .end):
        // One more follows an error of the commit, which the end of the request follows, unless the connection is lost.
        if expected.popFirst() == nil, connection.isLost { return false }
      case (_, .result), (_, .skipped): break
      }
    }
    return false
  }

  private mutating func fail(_ error: PostgresError, on connection: Connection) {
    // A user's own SQL can drop prepared statements, and a table that was changed makes them useless.
    if error.concernsPreparation { connection.forgetPreparations() }
    guard response.failure == nil else { return }
    response.failure = .refused(error)
    // During the commit, the end of the connection leaves it open whether the transaction was committed.
    let isCommitting = response.results.count >= request.statements.count - (request.endsWithCommit ? 1 : 0)
    isRefused = !error.sqlState.isEmpty && (!isCommitting || !error.endsConnection)
  }
}
#endif
