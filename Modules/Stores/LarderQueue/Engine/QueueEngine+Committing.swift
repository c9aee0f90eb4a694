import Larder
import LarderFiles

/// Turning a group of calls into one commit.
extension QueueEngine {
  /// The maximum size of the frames that are written together, in bytes.
  private static let groupLimit = 8 << 20

  /// The outcome of a group of calls.
  private struct Outcome {
    /// The calls that made changes, which must be written.
    var changed: [QueueCall] = []
    /// The calls that made no changes, and have ended.
    var unchanged: [Ending] = []
    /// A Boolean value that indicates whether a call made room.
    var makesRoom = false
  }

  /// Runs calls, and writes their changes.
  ///
  /// - Parameters:
  ///   - calls: The calls.
  ///   - core: The state of the queue.
  ///   - endings: The calls that have ended, to which this method appends.
  func settle(_ calls: [QueueCall], _ core: inout QueueCore, _ endings: inout [Ending]) {
    guard let first = calls.first else { return }
    let obstacle = prepare(&core, for: calls)
    core.beginGroup(time)
    // Before the first change that could be rolled back.
    core.ledger.advance(to: first.arrival)
    core.ledger.commit()
    let start = core.ledger.mark
    var outcome = Outcome()
    for (index, call) in calls.enumerated() {
      let isFull = core.frames.bytes.count >= QueueEngine.groupLimit
      guard !isFull, index == 0 || calls[index - 1].weight != .alone && call.weight != .alone else {
        state.withLock { $0.calls.putBack(calls[index...]) }
        break
      }
      run(call, &core, &outcome)
    }
    if !outcome.changed.isEmpty, let error = append(outcome.changed, &core, obstacle) {
      core.ledger.rollBack(to: start)
      retry(outcome, after: error, obstacle: obstacle, &core, &endings)
      return
    }
    core.ledger.commit()
    if !core.ledger.newDeadLetters.isEmpty {
      deadLetterObservers.report(core.ledger.newDeadLetters)
      core.ledger.newDeadLetters = []
    }
    if outcome.makesRoom { state.withLock { $0.calls.returnProducers() } }
    for call in outcome.changed { endings.append((call, .success(()))) }
    endings += outcome.unchanged
  }

  /// Inserts a call that removes dead letters past their retention time before calls that write.
  func insertExpiryOfDeadLetters(_ calls: inout [QueueCall], _ core: inout QueueCore) {
    guard let first = calls.first(where: { $0.weight == .writes || $0.weight == .blocks }), !core.isClosed,
      !calls.contains(where: { $0.weight == .alone })
    else { return }
    core.ledger.advance(to: first.arrival)
    core.ledger.commit()
    guard core.ledger.hasExpiredDeadLetters else { return }
    let expiry = QueueCall(.purgeDeadLetters, .writes, at: first.arrival) { core in
      core.ledger.expireDeadLetters(256, into: &core.frames)
    }
    calls.insert(expiry, at: 0)
  }

  /// Prepares the log for new frames.
  ///
  /// - Returns: The error if frames cannot be appended.
  private func prepare(_ core: inout QueueCore, for calls: [QueueCall]) -> (any Error)? {
    if calls.contains(where: { $0.weight == .writes || $0.weight == .blocks }) { passCodecName(to: &core) }
    guard !core.isClosed, !core.isReady, folder.access == .readWrite,
      calls.contains(where: { $0.weight != .looks })
    else { return nil }
    do {
      try core.makeReady(time, mayUseReserve: calls.contains { $0.weight != .looks && !$0.needsRoom })
      return nil
    } catch {
      // A segment that is merely too long can still take frames, unless other programs have changed the files.
      return core.log.isSealed || (error as? StoreError)?.code == .conflict ? error : nil
    }
  }

  /// Runs a call.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - core: The state of the queue.
  ///   - outcome: The outcome of the group, to which this method adds the call if it does not wait.
  private func run(_ call: QueueCall, _ core: inout QueueCore, _ outcome: inout Outcome) {
    guard call.begin() else { return }
    let (hasProducers, producerReturns) = state.withLock { ($0.calls.hasProducers, $0.calls.producerReturns) }
    core.ledger.advance(to: call.arrival)
    let mark = core.ledger.mark
    let held = (items: core.ledger.heldItems, bytes: core.ledger.heldBytes)
    core.ledger.beginCall()
    core.frames.beginCall()
    do {
      let isBehindOthers = call.waitsForRoom && hasProducers
      if isBehindOthers, call.hasWaited { throw QueueRefusal.full(neverFits: false) }
      if call.needsRoom { try checkDisk(&core) }
      try call.body(&core)
      let growth = (items: core.ledger.heldItems - held.items, bytes: core.ledger.heldBytes - held.bytes)
      // A call that needs no room does not wait for others that do, since it may make room.
      if isBehindOthers, growth.items > 0 || growth.bytes > 0 { throw QueueRefusal.full(neverFits: false) }
      guard core.frames.callLength <= QueueFrame.maximumBodyLength else {
        throw folder.error(
          .valueTooLarge, during: call.operation,
          "one write must have at most \(QueueFrame.maximumBodyLength) bytes; split it into smaller ones")
      }
      if growth.items < 0 || growth.bytes < 0 { outcome.makesRoom = true }
      if core.frames.callLength > 0 {
        outcome.changed.append(call)
      } else {
        outcome.unchanged.append((call, .success(())))
      }
    } catch {
      core.ledger.rollBack(to: mark)
      core.frames.dropCall()
      switch error {
      case QueueRefusal.full(neverFits: false) where call.waitsForRoom:
        park(call, asProducerSince: producerReturns)
      case QueueRefusal.noItems: park(call)
      default: outcome.unchanged.append((call, .failure(storeError(error, during: call.operation))))
      }
    }
  }

  /// Parks a call, unless it was cancelled or the queue is closing.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - producerReturns: The number of returns of producers before the call found no room, or `nil` if it waits for items.
  private func park(_ call: QueueCall, asProducerSince producerReturns: Int? = nil) {
    guard call.park() else { return }
    let waits = state.withLock { $0.calls.park(call, asProducerSince: producerReturns) { $0.result != nil } }
    if !waits { call.end(.failure(information.closedError(for: call.operation))) }
  }

  /// Throws if the space reserve was spent on a full disk and cannot be restored.
  private func checkDisk(_ core: inout QueueCore) throws {
    guard core.log.reserve.isSpent else { return }
    try core.log.reserve.make(
      like: core.log.segment.attributes, at: core.present, in: core.log.number)
    if core.log.reserve.isSpent { throw QueueRefusal.diskFull }
  }

  /// Writes the changes of calls.
  ///
  /// - Returns: The error if they could not be written.
  private func append(_ calls: [QueueCall], _ core: inout QueueCore, _ obstacle: (any Error)?) -> (any Error)? {
    do {
      if let obstacle { throw obstacle }
      core.frames.finish()
      try core.log.append(core.frames, mayUseReserve: calls.allSatisfy { !$0.needsRoom })
      return nil
    } catch {
      return error
    }
  }

  /// Ends calls whose changes could not be written, or retries them one by one, since the changes of one call may fit
  /// when those of all do not.
  private func retry(
    _ outcome: Outcome, after error: any Error, obstacle: (any Error)?, _ core: inout QueueCore,
    _ endings: inout [Ending]
  ) {
    // There may be room for others now. They come after the calls that are retried here, and before all later ones.
    state.withLock { $0.calls.returnProducers() }
    if outcome.changed.count == 1 || core.log.isSealed {
      let effect: StoreError.Outcome = core.log.isSealed && obstacle == nil ? .unknown : .nothingChanged
      for call in outcome.changed {
        endings.append((call, .failure(storeError(error, during: call.operation, outcome: effect))))
      }
    } else {
      for call in outcome.changed { settle([call], &core, &endings) }
    }
    // The others may have seen changes that were rolled back.
    settle(outcome.unchanged.map(\.call), &core, &endings)
  }

  private func storeError(
    _ error: any Error, during operation: StoreOperation, outcome: StoreError.Outcome = .nothingChanged
  ) -> any Error {
    switch error {
    case let error as FileError:
      return StoreError(
        error, during: operation, store: folder.name, message: "the queue could not be read or written",
        outcome: outcome)
    case QueueRefusal.stale:
      return folder.error(
        .staleReceipt, during: operation,
        "the receipt is stale: its lease has ended, or the item was replaced or removed")
    case QueueRefusal.full(let neverFits):
      return folder.error(
        .full, during: operation,
        neverFits ? "the write exceeds the capacity of the queue" : "the queue is full",
        isRetryable: !neverFits)
    case QueueRefusal.diskFull:
      return folder.error(
        .full, during: operation,
        "the disk is full: the remaining space is reserved for removing items; retry when items have been removed",
        isRetryable: true)
    case QueueRefusal.conflict(let key):
      return folder.error(
        .conflict, during: operation, key: key, "an item with the key of the dead letter is in the queue")
    case QueueRefusal.exhausted:
      return folder.error(.full, during: operation, "the queue has no sequence numbers left; create a new queue")
    default:
      return error
    }
  }
}

/// A timer that fires at a deadline, and reads no clock until then.
final class DeadlineTimer: Sendable {
  private let clock: any Clock<Duration>
  private let setting = Locked<(deadline: Int64, task: Task<Void, Never>)?>(nil)

  init(clock: any Clock<Duration>) {
    self.clock = clock
  }

  deinit {
    cancel()
  }

  /// Sets the timer to another deadline.
  ///
  /// - Parameters:
  ///   - deadline: The deadline, in microseconds.
  ///   - now: The current time, in microseconds.
  ///   - action: The closure to run at the deadline.
  func set(_ deadline: Int64, now: Int64, action: @escaping @Sendable () -> Void) {
    let clock = clock
    let (difference, overflows) = deadline.subtractingReportingOverflow(now)
    let displaced = setting.withLock { setting -> Task<Void, Never>? in
      if setting?.deadline == deadline { return nil }
      let displaced = setting?.task
      let task = Task.detached { [weak self] in
        // The timer may be set to another deadline, or cancelled.
        guard await clock.hasSlept(for: .microseconds(overflows ? .max : max(difference, 1))) else { return }
        self?.forget(deadline)
        action()
      }
      setting = (deadline, task)
      return displaced
    }
    displaced?.cancel()
  }

  private func forget(_ deadline: Int64) {
    setting.withLock { setting in
      if setting?.deadline == deadline { setting = nil }
    }
  }

  /// Cancels the timer.
  func cancel() {
    setting.withLock { $0.take() }?.task.cancel()
  }
}
