public import Larder

extension WriteBehindStore {
  /// Writes accepted changes until none are left.
  func flushChanges() async {
    while true {
      let now = self.now
      switch queue.withLock({ $0.nextFlusherStep(at: now) }) {
      case .end: return
      case .wait(let duration): await pause.wait(duration)
      case .flush(let batches):
        let failures = await write(batches)
        for failure in failures { onFailure(failure) }
        let now = self.now
        let consequences = queue.withLock { $0.finishFlush(failures: failures, at: now) }
        for failure in failures { observers.report(failure.changes) }
        carryOut(consequences)
      }
    }
  }

  /// Writes batches, all together if that succeeds.
  ///
  /// - Returns: The batches that had to be discarded.
  private func write(_ batches: [SizedBatch<Value>]) async -> [WriteBehindFailure<Value>] {
    var attempt = 0
    // A batch that is discarded here is not tried again, so no batch is discarded together with others that may be
    // good.
    let commit = await GroupCommit(count: batches.count, singleFailureLimit: .max) { part in
      await write(PendingChanges.joined(batches[part]), attempt: &attempt)
    }
    return commit.failures.map { part, error in
      // Every accepted change is reported, including those that a later change replaced.
      WriteBehindFailure(
        changes: ChangeBatch(batches[part].flatMap { $0.batch.changes }), error: storeError(error),
        size: batches[part].reduce(into: BatchSize()) { $0 += $1.size })
    }
  }

  /// Writes changes together, and retries errors that may be transient.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - attempt: The number of retries that this flush has made.
  /// - Returns: The error if they could not be written.
  private func write(_ changes: ChangeBatch<Value>, attempt: inout Int) async -> StoreError? {
    while true {
      do {
        try await base.apply(changes)
        return nil
      } catch {
        let error = storeError(error)
        guard error.isRetryable, error.outcome == .nothingChanged, let delay = retries.delay(before: attempt) else {
          return error
        }
        attempt += 1
        await FlushPause(clock: clock).wait(delay)
      }
    }
  }

  private func storeError(_ error: any Error) -> StoreError {
    error as? StoreError
      ?? StoreError(
        .ioFailed, during: .flush, store: base.information.name, message: "the changes could not be written",
        underlying: error, outcome: .unknown)
  }
}

/// A wait of the flusher that can be cut short.
final class FlushPause: Sendable {
  private enum State {
    case none
    case waiting(Task<Void, Never>)
    /// The pause was ended before it began.
    case ended
  }

  private let clock: any Clock<Duration>
  private let state = Locked(State.none)

  /// Creates a pause.
  ///
  /// - Parameter clock: The clock that measures it.
  init(clock: any Clock<Duration>) {
    self.clock = clock
  }

  /// Waits for a duration or until ``end()`` is called.
  ///
  /// Only one task may wait at a time.
  func wait(_ duration: Duration) async {
    let clock = clock
    let sleep = Task.detached {
      do {
        try await clock.sleep(for: duration)
      } catch {
        // Only `end()` cancels the sleep, and then the wait is over as well.
      }
    }
    let isEnded = state.withLock { state in
      if case .ended = state { return true }
      state = .waiting(sleep)
      return false
    }
    if isEnded { sleep.cancel() }
    await sleep.value
    state.withLock { $0 = .none }
  }

  /// Ends the current wait, or else the next one before it begins.
  func end() {
    let sleep: Task<Void, Never>? = state.withLock { state in
      if case .waiting(let sleep) = state { return sleep }
      state = .ended
      return nil
    }
    sleep?.cancel()
  }
}

/// The number and the delays of a ``WriteBehindStore``'s retries of failed writes.
///
/// Only an error that is both `isRetryable` and `nothingChanged` is retried.
public struct WriteBehindRetryPolicy: Sendable, Hashable {
  /// The maximum number of retries, or 0 for none.
  public let attempts: Int

  /// The delay before the first retry.
  ///
  /// Each further delay is twice as long.
  public let firstDelay: Duration

  /// The maximum delay.
  public let maximumDelay: Duration

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - attempts: The maximum number of retries, or 0 for none. Defaults to 8.
  ///   - firstDelay: The delay before the first retry. Each further delay is twice as long. Defaults to 10
  ///     milliseconds.
  ///   - maximumDelay: The maximum delay. Defaults to one second.
  public init(
    attempts: Int = 8, firstDelay: Duration = .milliseconds(10), maximumDelay: Duration = .seconds(1)
  ) {
    self.attempts = max(0, attempts)
    self.firstDelay = max(.zero, firstDelay)
    self.maximumDelay = max(.zero, maximumDelay)
  }

  /// Returns the delay before a retry, or `nil` if there are no more retries.
  ///
  /// - Parameter attempt: The index of the retry, from 0.
  func delay(before attempt: Int) -> Duration? {
    guard attempt < attempts else { return nil }
    var delay = min(firstDelay, maximumDelay)
    // Doubling step by step avoids the overflow of a large power of two. After 96 doublings, any delay has reached its
    // maximum.
    for _ in 0..<min(attempt, 96) where delay < maximumDelay {
      delay = delay > maximumDelay / 2 ? maximumDelay : delay * 2
    }
    return delay
  }
}

/// Changes that a ``WriteBehindStore`` had accepted and could not write, with the error.
public struct WriteBehindFailure<Value: Sendable>: Sendable {
  /// The changes in the order in which they were accepted, including those that a later change replaces.
  ///
  /// All of them failed together.
  public let changes: ChangeBatch<Value>

  /// The error of the write.
  public let error: StoreError

  /// The size of the changes.
  let size: BatchSize
}

/// The statistics of the changes that a ``WriteBehindStore`` has accepted and not yet written, which a crash would
/// lose.
public struct WriteBehindStatistics: Sendable, Hashable {
  /// The number of changes that are pending or being written.
  public let pendingChanges: Int

  /// The number of bytes of their keys and values, or 0 if the bounds do not count bytes.
  public let pendingBytes: Int

  /// The age of the oldest pending change, or `nil` if none is pending.
  public let oldestAge: Duration?

  /// The number of callers that wait for room or for exclusive access to the base.
  public let waitingCallers: Int

  /// The number of failed changes that were not yet taken.
  public let failedChanges: Int
}
