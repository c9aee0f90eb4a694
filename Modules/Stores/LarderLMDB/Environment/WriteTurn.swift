#if LMDB
import CLMDB
import Larder

/// The wait of a call for its turn to write that ends at a deadline.
///
/// LMDB's lock cannot be limited. The thread that waits for it keeps waiting after its call has been given up, and then
/// finds that there is nothing to do.
final class WriteTurn: Sendable {
  private enum Phase {
    case waiting
    case begun
    case givenUp
  }

  /// The shortest time after which a call is given up.
  ///
  /// LMDB does not say whether its lock is free, and to take a free lock needs some time, too.
  static let shortestTimeout = Duration.milliseconds(250)

  private let phase = Locked(Phase.waiting)

  /// Notes that the call has the write lock and is about to run.
  ///
  /// - Throws: `CancellationError` if the call was given up, so nothing may be changed.
  func begin() throws {
    let hasBegun = phase.withLock { phase in
      if phase == .waiting { phase = .begun }
      return phase == .begun
    }
    if !hasBegun { throw CancellationError() }
  }

  /// Throws `CancellationError` if the call was given up.
  func check() throws {
    if phase.withLock({ $0 == .givenUp }) { throw CancellationError() }
  }

  /// Gives the call up unless it has begun.
  ///
  /// - Returns: A Boolean value that indicates whether the call was given up, now or before.
  func giveUp() -> Bool {
    phase.withLock { phase in
      if phase == .waiting { phase = .givenUp }
      return phase == .givenUp
    }
  }

  /// Runs a call, and gives it up if it has not begun within a time.
  ///
  /// - Parameters:
  ///   - timeout: The time from now on, raised to ``shortestTimeout``.
  ///   - body: The call. It must call ``begin()`` once it has the write lock and before it changes anything.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`; ``TimedOut``, or `CancellationError` if the task is cancelled, before the call has begun.
  ///   Nothing is changed then.
  static func run<Result: Sendable>(
    within timeout: Duration, _ body: @escaping @Sendable (WriteTurn) async throws -> Result
  ) async throws -> Result {
    let turn = WriteTurn()
    let work = Locked<(@Sendable (WriteTurn) async throws -> Result)?>(body)
    let takeWork = { @Sendable in work.withLock { $0.take() } }
    let caller = Locked<CheckedContinuation<Result, any Error>?>(nil)
    let answer = { @Sendable (result: Swift.Result<Result, any Error>) in
      let continuation = caller.withLock { caller in
        defer { caller = nil }
        return caller
      }
      continuation?.resume(with: result)
    }
    let cancel = { @Sendable in
      if turn.giveUp() { answer(.failure(CancellationError())) }
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        caller.withLock { $0 = continuation }
        if Task.isCancelled { return cancel() }
        let timer = Task {
          try await Task.sleep(for: max(timeout, shortestTimeout))
          if turn.giveUp() { answer(.failure(TimedOut())) }
        }
        Task {
          answer(await turn.result(of: takeWork))
          timer.cancel()
        }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Returns the result of a call, when the call and what it holds have been released.
  ///
  /// A handle that the caller then drops is closed by the caller, and not some time later by the thread of the call.
  private func result<Result: Sendable>(
    of takeWork: () -> (@Sendable (WriteTurn) async throws -> Result)?
  ) async -> Swift.Result<Result, any Error> {
    do {
      guard let body = takeWork() else { throw CancellationError() }
      return .success(try await body(self))
    } catch {
      return .failure(error)
    }
  }

  /// The error of a call that was given up because its time has passed.
  struct TimedOut: Error {}
}

extension EnvironmentHandle {
  /// Runs a call of the environment's writer, for at most ``busyTimeout`` until it has begun.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - body: The call. It receives the writer, and its turn if there is a limit.
  /// - Throws: The error of `body`. ``StoreError`` with `timedOut`, or `CancellationError` if there is a limit and the task is
  ///   cancelled, with nothing changed.
  func withWriter<Result: Sendable>(
    during operation: StoreOperation,
    _ body: @escaping @Sendable (_ writer: EnvironmentWriter, _ turn: WriteTurn?) async throws -> Result
  ) async throws -> Result {
    let writer = environment.writer
    guard let busyTimeout else { return try await body(writer, nil) }
    do {
      return try await WriteTurn.run(within: busyTimeout) { try await body(writer, $0) }
    } catch is WriteTurn.TimedOut {
      throw StoreError(
        .timedOut, during: operation, store: name,
        message: "another writer held the lock of the environment for longer than \(busyTimeout); try again",
        isRetryable: true)
    }
  }

  /// Runs a closure in a write transaction, and ends it as the closure decides; see ``EnvironmentWriter/write(for:during:turn:_:)``.
  func write<Result: Sendable>(
    during operation: StoreOperation,
    _ body: @escaping @Sendable (OpaquePointer, inout CommitRecord<MDB_dbi>) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    guard busyTimeout != nil else {
      return try await environment.writer.write(for: self, during: operation, turn: nil, body)
    }
    return try await withWriter(during: operation) { writer, turn in
      try await writer.write(for: self, during: operation, turn: turn, body)
    }
  }
}
#endif
