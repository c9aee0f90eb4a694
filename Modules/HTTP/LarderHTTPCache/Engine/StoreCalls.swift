#if HTTPCache
import Larder

/// Calls of a store that never make their caller wait for longer than a time limit.
///
/// After a call that exceeded its limit, further calls fail immediately until that call has returned, or until the limit
/// has passed again. A store that hangs thus delays one request in a while, and collects few suspended calls.
final class StoreCalls: Sendable {
  private struct State {
    /// The number of the last call that exceeded the limit.
    var lastStall: UInt64 = 0
    /// The time until which no call is made; `nil` if the store works.
    var pauseEnd: Duration?
    var failureCount = 0
    var timeoutCount = 0
  }

  private let storeName: String
  private let limit: TimeLimit
  private let state = Locked(State())

  /// Creates the calls of a store.
  ///
  /// - Parameters:
  ///   - storeName: The name of the store, for errors.
  ///   - limit: The time that a call may take.
  ///   - clock: The clock that measures it.
  init(of storeName: String, limit: Duration, clock: any Clock<Duration>) {
    self.storeName = storeName
    self.limit = TimeLimit(limit, clock: clock)
  }

  /// The number of calls that failed, and how many of them exceeded their limit.
  var counts: (failures: Int, timeouts: Int) { state.withLock { ($0.failureCount, $0.timeoutCount) } }

  /// A Boolean value that indicates whether the store is paused because a call exceeded the limit.
  private var isPaused: Bool {
    state.withLock { state in
      guard let end = state.pauseEnd else { return false }
      guard limit.now >= end else { return true }
      state.pauseEnd = nil
      return false
    }
  }

  /// Calls the store.
  ///
  /// The call begins on the caller's thread. If it returns without being suspended, it costs less than a microsecond more.
  ///
  /// - Parameters:
  ///   - evenIfPaused: A Boolean value that indicates whether to make the call although an earlier one has exceeded the
  ///     limit. Defaults to `false`.
  ///   - body: The call. It is cancelled if the limit passes or the caller is cancelled. It may continue after that.
  /// - Returns: The result of the call.
  /// - Throws: The errors of the call; `StoreError` with `timedOut`; `CancellationError`. All but the last are counted.
  @discardableResult
  func callAsFunction<Result: Sendable>(
    evenIfPaused: Bool = false, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    guard evenIfPaused || !isPaused else { throw timedOut("did not return earlier") }
    let result = SharedResult<Result>()
    let task = StoreCalls.start(body, result)
    do {
      if let finished = result.result { return try finished.get() }
      return try await result.value(within: limit)
    } catch is SharedResult<Result>.TimedOut {
      task.cancel()
      pause(until: result)
      throw timedOut("did not return within \(limit.duration)")
    } catch {
      if Task.isCancelled { task.cancel() }
      // A refusal is an answer of a store that works.
      if !(error is CancellationError || error is StorageRefusal) { state.withLock { $0.failureCount += 1 } }
      throw error
    }
  }

  /// Calls the store without a time limit, and counts a failure.
  func withoutLimit<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch {
      if !(error is CancellationError) { state.withLock { $0.failureCount += 1 } }
      throw error
    }
  }

  private static func start<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result, _ result: SharedResult<Result>
  ) -> Task<Void, Never> {
    @concurrent @Sendable func call() async {
      do {
        result.finish(.success(try await body()))
      } catch {
        result.finish(.failure(error))
      }
    }
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      return .immediate { await call() }
    }
    return Task { await call() }
  }

  /// Pauses the store until a call returns.
  private func pause<Result>(until call: SharedResult<Result>) {
    let stall = state.withLock { state in
      state.lastStall += 1
      state.pauseEnd = limit.now + limit.duration
      state.failureCount += 1
      state.timeoutCount += 1
      return state.lastStall
    }
    Task { [weak self] in
      do {
        _ = try await call.value()
      } catch is CancellationError {
        // The call ended only because it was cancelled.
        return
      } catch {
        // An error shows that the store works again, as a result does.
      }
      self?.state.withLock { if $0.lastStall == stall { $0.pauseEnd = nil } }
    }
  }

  private func timedOut(_ what: String) -> StoreError {
    StoreError(
      .timedOut, during: .value, store: storeName,
      message: "an operation of the store \(what); check the disk and other programs that use it", isRetryable: true,
      outcome: .unknown)
  }
}
#endif
