#if Postgres
import Foundation
import Larder

/// The sessions of a database, each of which serves one caller at a time.
///
/// Sessions are made when they are needed. While no connection can be made, callers wait for those that exist.
final class SessionPool: Sendable {
  /// No session became free within the time limit.
  struct PoolTimeout: Error {}

  private typealias Turn = Allotment<Session>.Turn
  private typealias Continuation = CheckedContinuation<Result<Turn, any Error>, Never>

  private struct State {
    var allotment: Allotment<Session>
    /// The callers that wait, and the times until which they do.
    var waits: [Int: (continuation: Continuation, deadline: ContinuousClock.Instant)] = [:]
    var lastNumber = 0
    /// A Boolean value that indicates whether a task looks after those who wait and after connections beyond the limit.
    var isWatched = false
    var isClosed = false
    /// A Boolean value that indicates whether the database keeps every character of text, as far as a connection has
    /// told.
    var keepsText = true
    /// The identity of the server of the latest session.
    var serverIdentity: Substring = ""
    var connectCount = 0
    var repeatCount = 0
    var failureCount = 0

    /// The time until which callers use the connections that exist, because no other could be made.
    var pauseEnd = ContinuousClock.now

    var mayConnect: Bool { pauseEnd <= .now }
    var mustWatch: Bool { !waits.isEmpty || allotment.exceedsLimit }
  }

  /// The time that no further connection is tried after a failure.
  private static let pause = Duration.seconds(1)

  /// The time that one further connection may be made.
  private static let connectLimit = Duration.seconds(2)

  /// The time after which an unused connection beyond the limit is closed.
  private static let idleLimit = Duration.seconds(10)

  /// The time between two looks at those who wait and at connections beyond the limit.
  private static let tick = Duration.milliseconds(20)

  let configuration: SessionConfiguration
  private let reportedWait: Duration
  private let onEvent: @Sendable (PostgresConnectionEvent) -> Void
  private let poller: Poller
  private let state: Locked<State>

  /// Creates a pool without sessions.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - limit: The number of sessions that owners share.
  ///   - reportedWait: The time after which a call that waits for a connection is reported. Defaults to one second.
  ///   - onEvent: A closure that is called after each event. Defaults to one that does nothing.
  /// - Throws: ``PostgresError``.
  init(
    _ configuration: SessionConfiguration, limit: Int, reportedWait: Duration = .seconds(1),
    onEvent: @escaping @Sendable (PostgresConnectionEvent) -> Void = { _ in }
  ) throws(PostgresError) {
    self.configuration = configuration
    self.reportedWait = reportedWait
    self.onEvent = onEvent
    poller = try Poller()
    state = Locked(State(allotment: Allotment(limit: limit)))
  }

  deinit {
    close()
  }

  /// Ends the sessions, each once it serves no caller.
  func close() {
    let sessions = state.withLock { state in
      state.isClosed = true
      return state.allotment.removeFree(unusedSince: nil)
    }
    for session in sessions { session.close() }
  }

  /// A Boolean value that indicates whether the database keeps every character of text, as far as a connection has
  /// told.
  var keepsText: Bool { state.withLock { $0.keepsText } }

  /// Returns whether a session is with the server of the latest session of the pool, as far as that is known.
  func isOnCurrentServer(_ session: Session) -> Bool {
    let (current, own) = (state.withLock { $0.serverIdentity }, session.facts.serverIdentity)
    return current.isEmpty || own.isEmpty || current == own
  }

  /// Notes that a call is repeated.
  func noteRepeat(because error: PostgresError) {
    state.withLock { $0.repeatCount += 1 }
    onEvent(.repeated(error))
  }

  /// Notes that the changes of other hosts could not be read for a time.
  func noteUnreadChanges(_ duration: Duration) { onEvent(.changesUnread(duration)) }

  var statistics: PostgresConnectionStatistics {
    state.withLock { state in
      PostgresConnectionStatistics(
        connected: state.allotment.connectedCount, busy: state.allotment.takenCount,
        waiting: state.allotment.waiterCount, connects: state.connectCount, failures: state.failureCount,
        repeats: state.repeatCount)
    }
  }

  // MARK: Sessions

  /// Calls a closure with a session that the caller has for itself.
  ///
  /// - Parameters:
  ///   - owner: The owner.
  ///   - deadline: The time until which it waits for a session and for its connection.
  ///   - body: A closure that receives the session.
  /// - Throws: `CancellationError` if the task is cancelled while it waits; ``PoolTimeout``; ``FailedAttempt`` if no connection
  ///   exists and none can be made; the error that `body` throws.
  func withSession<Value>(
    for owner: ObjectIdentifier, until deadline: ContinuousClock.Instant, _ body: (Session) async throws -> Value
  ) async throws -> Value {
    let start = ContinuousClock.now
    while true {
      let session: Session
      switch try await take(for: owner, until: deadline) {
      case .use(let free): session = free
      case .connect:
        let turn = ContinuousClock.now
        do throws(PostgresError) {
          session = try await addSession(until: deadline)
        } catch {
          give(nil, of: owner)
          // Nothing is wrong with a server that had the rest of a long wait.
          if deadline <= .now, start.duration(to: turn) > turn.duration(to: deadline) { throw PoolTimeout() }
          let (isAlone, othersConnect) = state.withLock { state in
            (state.allotment.connectedCount == 0, state.allotment.connectingCount > 0)
          }
          if isAlone {
            // At the limit of the server, those who connect at the same moment may succeed.
            guard error.sqlState == "53300", othersConnect else { throw FailedAttempt(error) }
            try await Task.sleep(for: SessionPool.tick)
          }
          continue
        }
      }
      let result: Result<Value, any Error>
      do {
        result = .success(try await body(session))
      } catch {
        result = .failure(error)
      }
      if session.withState({ $0.mustReset }) { await session.reset() }
      give(session, of: owner)
      return try result.get()
    }
  }

  /// Connects to a server, outside of the allotment.
  ///
  /// - Throws: ``PostgresError``.
  func connect(
    _ configuration: SessionConfiguration, until deadline: ContinuousClock.Instant,
    onNotification: @escaping @Sendable (ServerNotification) -> Void = { _ in },
    onLoss: @escaping @Sendable (Session, PostgresError) -> Void
  ) async throws(PostgresError) -> Session {
    let start = ContinuousClock.now
    do throws(PostgresError) {
      let session = try await Session.connect(
        configuration, poller, until: deadline, onNotification: onNotification, onLoss: onLoss)
      state.withLock { state in
        state.connectCount += 1
        state.keepsText = session.facts.keepsText
      }
      onEvent(.connected(after: start.duration(to: .now)))
      return session
    } catch {
      state.withLock { state in
        state.failureCount += 1
        state.pauseEnd = .now + SessionPool.pause
      }
      onEvent(.connectionFailed(error))
      throw error
    }
  }

  /// Connects a session for an owner that has a turn.
  private func addSession(until deadline: ContinuousClock.Instant) async throws(PostgresError) -> Session {
    // Rather than to wait long for a connection, a caller waits for one that exists.
    let isAnyConnected = state.withLock { $0.allotment.connectedCount > 0 }
    let limit = isAnyConnected ? min(deadline, .now + SessionPool.connectLimit) : deadline
    do throws(PostgresError) {
      let session = try await connect(configuration, until: limit) { [weak self] in self?.lose($0, $1) }
      state.withLock { $0.serverIdentity = session.facts.serverIdentity }
      serve { $0.finishConnecting(session) }
      // If it was lost before it was noted, nothing would remove it.
      if session.isLost { lose(session, .late) }
      return session
    } catch {
      serve { $0.finishConnecting(nil) }
      throw error
    }
  }

  /// Removes a session that was lost.
  private func lose(_ session: Session, _ error: PostgresError) {
    if state.withLock({ $0.allotment.lose(session) }) { onEvent(.disconnected(error)) }
    serve()
  }

  // MARK: Turns

  private func take(for owner: ObjectIdentifier, until deadline: ContinuousClock.Instant) async throws -> Turn {
    try Task.checkCancellation()
    let (turn, number) = state.withLock { state in
      state.lastNumber += 1
      return (state.allotment.take(for: owner, mayConnect: state.mayConnect), state.lastNumber)
    }
    if let turn { return turn }
    let start = ContinuousClock.now
    defer {
      let duration = start.duration(to: .now)
      if duration >= reportedWait { onEvent(.waited(duration)) }
    }
    return try await withTaskCancellationHandler {
      await withCheckedContinuation { wait(number, for: owner, until: deadline, $0) }
    } onCancel: {
      giveUp(number, CancellationError())
    }.get()
  }

  private func wait(
    _ number: Int, for owner: ObjectIdentifier, until deadline: ContinuousClock.Instant, _ continuation: Continuation
  ) {
    let isCancelled = state.withLock { state in
      // If the task was cancelled before it waits here, nothing would end its wait.
      guard !Task.isCancelled else { return true }
      state.allotment.wait(number, for: owner)
      state.waits[number] = (continuation, deadline)
      return false
    }
    if isCancelled { continuation.resume(returning: .failure(CancellationError())) } else { serve() }
  }

  private func giveUp(_ number: Int, _ error: any Error) {
    let wait = state.withLock { state in
      state.allotment.giveUp(number)
      return state.waits.removeValue(forKey: number)
    }
    wait?.continuation.resume(returning: .failure(error))
  }

  /// Takes back a turn.
  private func give(_ session: Session?, of owner: ObjectIdentifier) {
    serve { $0.give(session, of: owner, now: .now) }
  }

  /// Changes the allotment, and hands turns to those who wait.
  private func serve(after change: (inout Allotment<Session>) -> Void = { _ in }) {
    var served: [(Continuation, Turn)] = []
    let (closed, mustWatch) = state.withLock { state in
      change(&state.allotment)
      while let (number, turn) = state.allotment.serveNext(mayConnect: state.mayConnect) {
        if let wait = state.waits.removeValue(forKey: number) { served.append((wait.continuation, turn)) }
      }
      let mustWatch = !state.isWatched && state.mustWatch
      if mustWatch { state.isWatched = true }
      return (state.isClosed ? state.allotment.removeFree(unusedSince: nil) : [], mustWatch)
    }
    for (continuation, turn) in served { continuation.resume(returning: .success(turn)) }
    for session in closed { session.close() }
    if mustWatch { Task { [weak self] in while await self?.watch() == true {} } }
  }

  /// Ends the waits whose time has passed, and closes connections beyond the limit that are unused.
  ///
  /// - Returns: A Boolean value that indicates whether there is more to watch.
  private func watch() async -> Bool {
    let (late, closed) = state.withLock { state in
      let late = state.waits.filter { $0.value.deadline <= .now }.keys
      return (late, state.allotment.removeFree(unusedSince: .now - SessionPool.idleLimit))
    }
    for number in late { giveUp(number, PoolTimeout()) }
    for session in closed { session.close() }
    // The pause after a failed connection may have ended.
    serve()
    // This task is never cancelled.
    try? await Task.sleep(for: SessionPool.tick)
    return state.withLock { state in
      state.isWatched = state.mustWatch
      return state.isWatched
    }
  }
}
#endif
