import Larder

extension WriteBehindStore {
  /// Writes all accepted changes.
  func flushChanges() async {
    while true {
      let now = self.now
      switch queue.withLock({ $0.nextFlusherStep(at: now) }) {
      case .end: return
      case .wait(let duration): await pause.wait(duration)
      case .flush(let batches, let retained, let isolatesErrors):
        let result = await write(batches, besides: retained, isolatesErrors: isolatesErrors)
        for failure in result.failures { onFailure(failure) }
        let now = self.now
        let consequences = queue.withLock { $0.finishFlush(result, at: now) }
        for failure in result.failures { observers.report(failure.changes) }
        carryOut(consequences)
      }
    }
  }

  /// Writes batches, all together if that succeeds.
  ///
  /// - Parameters:
  ///   - batches: The batches.
  ///   - retained: The older batches that are not tried.
  ///   - isolatesErrors: A Boolean value that indicates whether to find the batches that cause an error that may
  ///     concern all of them.
  private func write(
    _ batches: [SizedBatch<Value>], besides retained: [SizedBatch<Value>], isolatesErrors: Bool
  ) async -> Queue.FlushResult {
    // A batch that is given up here is not tried again, so no batch is given up together with others that may be good.
    // After an error that a retry may mend, all of them are tried again, and a few attempts are enough for now.
    let commit = await GroupCommit(
      count: batches.count, singleFailureLimit: { $0 ? 3 : .max }, isolatesRetryableErrors: isolatesErrors
    ) { part in
      do {
        try await base.apply(PendingChanges.joined(batches[part]))
        return nil
      } catch {
        return storeError(error)
      }
    }
    var result = Queue.FlushResult()
    var retries: [Range<Int>] = []
    var writtenCount = batches.count
    let now = self.now
    for (part, failure) in commit.failures {
      writtenCount -= part.count
      let error = storeError(failure)
      guard error.isRetryable else {
        // Every accepted change is reported, including those that a later change replaced.
        result.failures.append(WriteBehindFailure(batches[part], error: error))
        continue
      }
      let old = batches[part].prefix { isTooOld($0, at: now) }
      if !old.isEmpty { result.failures.append(WriteBehindFailure(old, error: error)) }
      guard old.count < part.count else { continue }
      retries.append(part.lowerBound + old.count..<part.upperBound)
      if result.error == nil { result.error = error }
    }
    result.isBaseDown = writtenCount == 0 && result.error.map { $0.concern != .oneChange } ?? false
    result.retained = changes(
      retained, retries: retries, of: batches, failures: commit.failures.map { $0.part })
    return result
  }

  private func isTooOld(_ batch: SizedBatch<Value>, at now: Duration) -> Bool {
    retries.maximumAge.map { now - batch.acceptedAt >= $0 } ?? false
  }

  /// Returns the changes that must be tried again, without those that a later batch replaced in the base.
  ///
  /// - Parameters:
  ///   - retained: The older batches that were not tried.
  ///   - retries: The failed parts that must be tried again.
  ///   - batches: The batches that were tried.
  ///   - failures: All failed parts.
  private func changes(
    _ retained: [SizedBatch<Value>], retries: [Range<Int>], of batches: [SizedBatch<Value>], failures: [Range<Int>]
  ) -> PendingChanges<Value> {
    var kept: [SizedBatch<Value>] = []
    var written: Set<StoreKey> = []
    // From the newest batch to the oldest one. The failed parts are in order.
    var (failures, retries) = (failures, retries)
    for index in batches.indices.reversed() where !(retained.isEmpty && retries.isEmpty) {
      if let last = failures.last, last.lowerBound > index { failures.removeLast() }
      if let last = retries.last, last.lowerBound > index { retries.removeLast() }
      if retries.last?.contains(index) ?? false {
        kept.append(batches[index].without(written, bounds: bounds))
      } else if !(failures.last?.contains(index) ?? false) {
        written.formUnion(batches[index].batch.changes.compactMap(\.key))
      }
    }
    kept += retained.reversed().map { $0.without(written, bounds: bounds) }
    var changes = PendingChanges<Value>()
    changes.add(kept.reversed())
    return changes
  }

  private func storeError(_ error: any Error) -> StoreError {
    if let error = error as? StoreError { return error }
    if error is CancellationError {
      // Only closing cancels the flusher, when it has reached its limit.
      return StoreError(
        .timedOut, during: .flush, store: base.information.name, message: "the write was canceled", underlying: error,
        isRetryable: true)
    }
    return StoreError(
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
