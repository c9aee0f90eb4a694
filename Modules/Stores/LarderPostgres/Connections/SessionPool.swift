#if Postgres
import Foundation
import Larder

/// The sessions of a database: one that only reads, so that a read never waits for a lock, and some that also write.
final class SessionPool: Sendable {
  /// Which session serves whom; a plain value, tested by itself.
  struct Allotment {
    /// The reads of a session, and whether it has a write or a transaction.
    struct Load: Equatable {
      var reads = 0
      var isWriting = false
    }

    private(set) var loads: [Load]

    /// Creates the allotment of one session that only reads and of some that write.
    init(writerCount: Int) {
      loads = Array(repeating: Load(), count: writerCount + 1)
    }

    /// Returns the session for a request that reads: the one with the fewest, of those where it waits for no lock.
    mutating func takeForReading() -> Int {
      var best = 0
      for index in loads.indices.dropFirst() where !loads[index].isWriting {
        if loads[index].reads < loads[best].reads { best = index }
      }
      loads[best].reads += 1
      return best
    }

    /// Returns the session for a write or a transaction, which has it for itself, or `nil` if all are taken.
    ///
    /// A write behind another one would wait for the locks that the other waits for, and its outcome would be unknown if
    /// the other is given up.
    mutating func takeForWriting() -> Int? {
      let free = loads.indices.dropFirst().filter { !loads[$0].isWriting }
      guard let best = free.min(by: { loads[$0].reads < loads[$1].reads }) else { return nil }
      loads[best].isWriting = true
      return best
    }

    mutating func endReading(_ index: Int) {
      loads[index].reads -= 1
    }

    mutating func endWriting(_ index: Int) {
      loads[index].isWriting = false
    }
  }

  private struct Waiter {
    let number: Int
    let continuation: CheckedContinuation<Result<Int, any Error>, Never>
  }

  private struct State {
    var allotment: Allotment
    /// Those who wait for a session, the first first.
    var waiters: [Waiter] = []
    var lastNumber = 0
  }

  let configuration: SessionConfiguration
  let listener: NotificationListener
  private let sessions: [Session]
  private let state: Locked<State>

  /// Creates sessions, none of which is connected yet.
  ///
  /// - Throws: ``PostgresError``.
  init(_ configuration: SessionConfiguration, writerCount: Int) throws(PostgresError) {
    self.configuration = configuration
    var sessions: [Session] = []
    for _ in 0...writerCount { sessions.append(try Session(configuration)) }
    self.sessions = sessions
    listener = try NotificationListener(configuration)
    state = Locked(State(allotment: Allotment(writerCount: writerCount)))
  }

  deinit {
    close()
  }

  /// The facts that the server told when the first session connected.
  var knownFacts: Session.Facts { sessions[0].knownFacts }

  /// Ends the sessions once their requests are answered.
  func close() {
    listener.close()
    for session in sessions { session.close() }
  }

  /// Sends a request that only reads.
  func read(_ request: Session.Request) async -> Session.Response {
    let index = state.withLock { $0.allotment.takeForReading() }
    defer { give { $0.endReading(index) } }
    return await sessions[index].run(request)
  }

  /// Calls a closure with a session for a write or a transaction, after waiting for one.
  ///
  /// - Throws: `CancellationError` if the task is cancelled while it waits; ``PoolTimeout``; the error that `body` throws.
  func withSession<Result>(_ body: (Session) async throws -> Result) async throws -> Result {
    let index = try await takeForWriting()
    defer { give { $0.endWriting(index) } }
    return try await body(sessions[index])
  }

  /// No session became free within the time limit.
  struct PoolTimeout: Error {}

  private func takeForWriting() async throws -> Int {
    try Task.checkCancellation()
    let (index, number) = state.withLock { state in
      // No caller overtakes those who wait.
      if state.waiters.isEmpty, let index = state.allotment.takeForWriting() { return (index as Int?, 0) }
      state.lastNumber += 1
      return (nil, state.lastNumber)
    }
    if let index { return index }
    let timer = Task { [configuration, weak self] in
      // Cancelled when the session was found.
      guard (try? await Task.sleep(for: configuration.timeout)) != nil else { return }
      self?.giveUp(number, PoolTimeout())
    }
    defer { timer.cancel() }
    return try await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        wait(Waiter(number: number, continuation: continuation))
      }
    } onCancel: {
      giveUp(number, CancellationError())
    }.get()
  }

  private func wait(_ waiter: Waiter) {
    let found = state.withLock { state -> Result<Int, any Error>? in
      // If the task was cancelled before it waits here, nothing would end its wait.
      if Task.isCancelled { return .failure(CancellationError()) }
      if state.waiters.isEmpty, let index = state.allotment.takeForWriting() { return .success(index) }
      state.waiters.append(waiter)
      return nil
    }
    if let found { waiter.continuation.resume(returning: found) }
  }

  private func giveUp(_ number: Int, _ error: any Error) {
    let waiter = state.withLock { state in
      state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume(returning: .failure(error))
  }

  /// Changes the allotment, and hands sessions to those who wait.
  private func give(_ change: (inout Allotment) -> Void) {
    let served = state.withLock { state in
      change(&state.allotment)
      var served: [(Waiter, Int)] = []
      while !state.waiters.isEmpty, let index = state.allotment.takeForWriting() {
        served.append((state.waiters.removeFirst(), index))
      }
      return served
    }
    for (waiter, index) in served { waiter.continuation.resume(returning: .success(index)) }
  }
}
#endif
