#if Postgres
import Foundation
import Larder

/// The sessions of a database, each of which serves one caller at a time.
///
/// Sessions are made when they are needed. While no connection can be made, callers wait for those that exist.
final class SessionPool: Sendable {
  /// Which session serves whom; a plain value, tested by itself.
  ///
  /// An owner is a store, a queue or a database. One that has no session gets one beyond the limit, so that calls which wait
  /// for a lock never stop those of other stores.
  struct Allotment {
    private struct Waiter {
      let number: Int
      let owner: ObjectIdentifier
    }

    private let limit: Int

    /// The number of sessions.
    private var count = 0

    /// The sessions that serve no caller, the latest last.
    private var free: [Int] = []

    /// The numbers of sessions by their owners.
    private var holdings: [ObjectIdentifier: Int] = [:]

    /// Those who wait for a session, the first first.
    private var waiters: [Waiter] = []

    /// The number of sessions that serve a caller.
    var takenCount: Int { count - free.count }

    /// The number of callers that wait.
    var waiterCount: Int { waiters.count }

    /// Creates an allotment without sessions.
    init(limit: Int) {
      self.limit = limit
    }

    /// Returns a session for an owner, or `nil` if it must wait.
    ///
    /// - Parameters:
    ///   - owner: The owner.
    ///   - mayConnect: Whether a session without a connection will do, although others are connected.
    ///   - isConnected: A closure that returns whether a session has a connection.
    mutating func take(for owner: ObjectIdentifier, mayConnect: Bool, isConnected: (Int) -> Bool) -> Int? {
      guard takenCount < limit || holdings[owner] == nil else { return nil }
      var taken = free.lastIndex(where: isConnected).map { free.remove(at: $0) }
      if taken == nil, mayConnect || !(0..<count).contains(where: isConnected) {
        taken = free.popLast() ?? count
        count = max(count, (taken ?? 0) + 1)
      }
      if taken != nil { holdings[owner, default: 0] += 1 }
      return taken
    }

    /// Takes back a session.
    mutating func give(_ session: Int, of owner: ObjectIdentifier) {
      free.append(session)
      holdings[owner, default: 1] -= 1
      if holdings[owner] == 0 { holdings[owner] = nil }
    }

    mutating func wait(_ number: Int, for owner: ObjectIdentifier) {
      waiters.append(Waiter(number: number, owner: owner))
    }

    /// Removes a caller that gave up waiting.
    mutating func giveUp(_ number: Int) {
      waiters.removeAll { $0.number == number }
    }

    /// Returns the next caller that gets a session: the first of those whose owner has none, or else the first.
    mutating func serveNext(mayConnect: Bool, isConnected: (Int) -> Bool) -> (number: Int, session: Int)? {
      guard !waiters.isEmpty else { return nil }
      let index = waiters.firstIndex { holdings[$0.owner] == nil } ?? 0
      let session = take(for: waiters[index].owner, mayConnect: mayConnect, isConnected: isConnected)
      return session.map { (waiters.remove(at: index).number, $0) }
    }
  }

  /// No session became free within the time limit.
  struct PoolTimeout: Error {}

  /// No connection could be made, and there is none.
  struct ConnectionFailure: Error {
    let error: PostgresError
  }

  private typealias Continuation = CheckedContinuation<Result<Int, any Error>, Never>

  private struct State {
    var allotment: Allotment
    var sessions: [Int: Session] = [:]
    /// The callers that wait, and the times until which they do.
    var waits: [Int: (continuation: Continuation, deadline: ContinuousClock.Instant)] = [:]
    /// Whether a task looks after those who wait.
    var isWatched = false
    var lastNumber = 0
    /// The sessions that are being connected.
    var connecting: Set<Int> = []
    var repeatCount = 0
    var failureCount = 0

    /// The time until which callers use the connections that exist, because no other could be made.
    var pauseEnd = ContinuousClock.now

    var isAnyConnected: Bool { sessions.values.contains { $0.isConnected } }

    /// Whether a further connection may be made: one after another, while there is one that callers can wait for.
    private var mayConnect: Bool { pauseEnd <= .now && connecting.isEmpty }

    private func isConnected(_ index: Int) -> Bool { sessions[index]?.isConnected == true }

    mutating func take(for owner: ObjectIdentifier) -> Int? {
      let index = allotment.take(for: owner, mayConnect: mayConnect) { [self] in isConnected($0) }
      if let index, !isConnected(index) { connecting.insert(index) }
      return index
    }

    /// Returns the callers that get a session now.
    mutating func serve() -> [(Continuation, Int)] {
      var served: [(Continuation, Int)] = []
      while let (number, session) = allotment.serveNext(
        mayConnect: mayConnect, isConnected: { [self] in isConnected($0) })
      {
        if !isConnected(session) { connecting.insert(session) }
        if let wait = waits.removeValue(forKey: number) { served.append((wait.continuation, session)) }
      }
      return served
    }
  }

  /// The time for which no further connection is tried after a failure.
  private static let pause = Duration.seconds(1)

  let configuration: SessionConfiguration
  let listener: NotificationListener
  private let state: Locked<State>

  /// Creates a pool without sessions.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - limit: The number of sessions that owners share.
  /// - Throws: ``PostgresError``.
  init(_ configuration: SessionConfiguration, limit: Int) throws(PostgresError) {
    self.configuration = configuration
    listener = try NotificationListener(configuration)
    state = Locked(State(allotment: Allotment(limit: limit)))
  }

  deinit {
    close()
  }

  /// Ends the sessions once their requests are answered.
  func close() {
    listener.close()
    for session in state.withLock({ $0.sessions.values.map { $0 } }) { session.close() }
  }

  /// Calls a closure with a connected session, which the caller has for itself.
  ///
  /// - Parameters:
  ///   - owner: The owner.
  ///   - deadline: The time until which it waits for a session and for its connection.
  ///   - body: A closure that receives the session.
  /// - Throws: `CancellationError` if the task is cancelled while it waits; ``PoolTimeout``; ``ConnectionFailure``; the error
  ///   that `body` throws.
  func withSession<Value>(
    for owner: ObjectIdentifier, until deadline: ContinuousClock.Instant, _ body: (Session) async throws -> Value
  ) async throws -> Value {
    while true {
      let index = try await take(for: owner, until: deadline)
      defer { give(index, of: owner) }
      switch await connected(index, until: deadline) {
      case .success(let session): return try await body(session)
      case .failure(let error):
        let (isAlone, othersConnect) = state.withLock { state in
          state.pauseEnd = .now + SessionPool.pause
          state.failureCount += 1
          return (!state.isAnyConnected, !state.connecting.isEmpty)
        }
        if isAlone {
          // At the limit of the server, those who connect at the same moment may succeed.
          guard error.sqlState == "53300", othersConnect else { throw ConnectionFailure(error: error) }
          try await Task.sleep(for: SessionPool.tick)
        }
      }
    }
  }

  /// Whether the database keeps every character of text, as far as a connection has told.
  var keepsText: Bool { state.withLock { $0.sessions.values.allSatisfy { $0.knownFacts.server?.keepsText ?? true } } }

  /// Notes that a call is repeated.
  func noteRepeat() {
    state.withLock { $0.repeatCount += 1 }
  }

  var statistics: PostgresConnectionStatistics {
    state.withLock { state in
      PostgresConnectionStatistics(
        connected: state.sessions.values.count { $0.isConnected }, busy: state.allotment.takenCount,
        waiting: state.allotment.waiterCount,
        connects: state.sessions.values.reduce(0) { $0 + $1.knownFacts.connectCount },
        failures: state.failureCount, repeats: state.repeatCount)
    }
  }

  /// Returns a session, which is made and connected if it is not, or why it cannot be.
  private func connected(_ index: Int, until deadline: ContinuousClock.Instant) async -> Result<Session, PostgresError>
  {
    let session: Session
    do throws(PostgresError) {
      session = if let found = state.withLock({ $0.sessions[index] }) { found } else { try Session(configuration) }
    } catch {
      state.withLock { _ = $0.connecting.remove(index) }
      return .failure(error)
    }
    if session.isConnected { return .success(session) }
    let isAnyConnected = state.withLock { state in
      state.sessions[index] = session
      return state.isAnyConnected
    }
    // Rather than to wait long for a connection, a caller waits for one that exists.
    let limit = isAnyConnected ? min(deadline, .now + SessionPool.connectLimit) : deadline
    let response = await session.run(Session.Request(deadline: limit))
    state.withLock { _ = $0.connecting.remove(index) }
    serve()
    guard case .notSent(let error) = response.failure else { return .success(session) }
    return .failure(error)
  }

  /// The time for which one further connection may be made.
  private static let connectLimit = Duration.seconds(2)

  private func take(for owner: ObjectIdentifier, until deadline: ContinuousClock.Instant) async throws -> Int {
    try Task.checkCancellation()
    let (index, number) = state.withLock { state in
      state.lastNumber += 1
      return (state.take(for: owner), state.lastNumber)
    }
    if let index { return index }
    return try await withTaskCancellationHandler {
      await withCheckedContinuation { wait(number, for: owner, until: deadline, $0) }
    } onCancel: {
      giveUp(number, CancellationError())
    }.get()
  }

  private func wait(
    _ number: Int, for owner: ObjectIdentifier, until deadline: ContinuousClock.Instant, _ continuation: Continuation
  ) {
    let found = state.withLock { state -> Result<Int, any Error>? in
      // If the task was cancelled or its time has passed before it waits here, nothing would end its wait.
      if Task.isCancelled { return .failure(CancellationError()) }
      if deadline <= .now { return .failure(PoolTimeout()) }
      if let index = state.take(for: owner) { return .success(index) }
      state.allotment.wait(number, for: owner)
      state.waits[number] = (continuation, deadline)
      // One task looks after all who wait.
      if !state.isWatched { Task { [weak self] in while await self?.endLateWaits() == true {} } }
      state.isWatched = true
      return nil
    }
    if let found { continuation.resume(returning: found) }
  }

  /// The time between two looks at those who wait.
  private static let tick = Duration.milliseconds(20)

  /// Ends the waits whose time has passed, and returns whether there are others.
  private func endLateWaits() async -> Bool {
    let late = state.withLock { state in state.waits.filter { $0.value.deadline <= .now }.keys }
    for number in late { giveUp(number, PoolTimeout()) }
    // The pause after a failed connection may have ended.
    serve()
    // This task is never cancelled.
    try? await Task.sleep(for: SessionPool.tick)
    return state.withLock { state in
      state.isWatched = !state.waits.isEmpty
      return state.isWatched
    }
  }

  private func giveUp(_ number: Int, _ error: any Error) {
    let wait = state.withLock { state in
      state.allotment.giveUp(number)
      return state.waits.removeValue(forKey: number)
    }
    wait?.continuation.resume(returning: .failure(error))
  }

  /// Takes back a session.
  private func give(_ index: Int, of owner: ObjectIdentifier) {
    serve { $0.give(index, of: owner) }
  }

  /// Changes the allotment, and hands sessions to those who wait.
  private func serve(after change: (inout Allotment) -> Void = { _ in }) {
    let served = state.withLock { state in
      change(&state.allotment)
      return state.serve()
    }
    for (continuation, session) in served { continuation.resume(returning: .success(session)) }
  }
}
#endif
