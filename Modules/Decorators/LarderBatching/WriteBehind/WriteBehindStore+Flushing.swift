import Larder
import Synchronization

extension WriteBehindStore {
  /// Writes what is accepted until nothing is left.
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
        carryOut(queue.withLock { $0.finishFlush(failures: failures, at: now) })
      }
    }
  }

  /// Writes batches, all together if that succeeds.
  ///
  /// - Returns: The batches that had to be given up.
  private func write(_ batches: [SizedBatch<Value>]) async -> [WriteBehindFailure<Value>] {
    var attempt = 0
    // What is given up here is not tried again, so no batch is given up with others that may be good.
    let commit = await GroupCommit(count: batches.count, singleFailureLimit: .max) { part in
      await write(PendingChanges.joined(batches[part]), attempt: &attempt)
    }
    return commit.failures.map { part, error in
      // Every accepted change is reported, also one that a later change replaced.
      WriteBehindFailure(
        changes: ChangeBatch(batches[part].flatMap { $0.batch.changes }), error: storeError(error),
        size: batches[part].reduce(into: BatchSize()) { $0 += $1.size })
    }
  }

  /// Writes changes together, and again if that may succeed later.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - attempt: The number of further attempts that this flush has made.
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

/// A wait of a flusher, which can be cut short.
final class FlushPause: Sendable {
  private enum State {
    case none
    case waiting(Task<Void, Never>)
    /// It was ended before it began.
    case ended
  }

  private let clock: any Clock<Duration>
  private let state = Mutex(State.none)

  /// Creates a pause.
  ///
  /// - Parameter clock: The clock that measures it.
  init(clock: any Clock<Duration>) {
    self.clock = clock
  }

  /// Waits.
  ///
  /// Only one task may wait at a time.
  func wait(_ duration: Duration) async {
    let clock = clock
    let sleep = Task.detached {
      do {
        try await clock.sleep(for: duration)
      } catch {
        // Only `end()` cuts the sleep short, and then the wait is over as well.
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

  /// Ends the wait, or else the next one before it begins.
  func end() {
    let sleep: Task<Void, Never>? = state.withLock { state in
      if case .waiting(let sleep) = state { return sleep }
      state = .ended
      return nil
    }
    sleep?.cancel()
  }
}
