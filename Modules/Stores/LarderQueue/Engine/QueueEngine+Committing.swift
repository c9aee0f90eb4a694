import Larder
import LarderFiles
import Synchronization

/// Turning a group of calls into one commit.
extension QueueEngine {
  /// The maximum size of the frames that are written together, in bytes.
  private static let groupLimit = 8 << 20

  /// The outcome of a group of calls.
  private struct Outcome {
    /// The calls that made changes, which must be written.
    var framed: [(call: QueueCall, verdict: QueueCall.Verdict)] = []
    /// The calls that made no changes.
    var frameless: [Ending] = []
  }

  /// Runs calls, and writes their changes.
  ///
  /// - Parameters:
  ///   - calls: The calls, at least one.
  ///   - core: The state of the queue.
  ///   - endings: The calls that have ended, to which this method appends.
  func settle(_ calls: [QueueCall], _ core: inout QueueCore, _ endings: inout [Ending]) {
    let obstacle = prepare(&core, for: calls)
    core.beginGroup(time)
    // Before the first change that could be rolled back.
    if let first = calls.first { core.ledger.advance(to: first.arrival) }
    core.ledger.commit()
    let start = core.ledger.mark
    var outcome = Outcome()
    for (index, call) in calls.enumerated() {
      let isFull = core.frames.bytes.count >= QueueEngine.groupLimit
      guard !isFull, index == 0 || calls[index - 1].weight != .alone && call.weight != .alone else {
        state.withLock { $0.waitQueue.putBack(calls[index...]) }
        break
      }
      run(call, isFirst: false, &core, &outcome)
    }
    write(outcome, since: start, obstacle, &core, &endings)
  }

  /// Retries the calls that wait for room, in order, up to the first that still has no room.
  ///
  /// - Parameters:
  ///   - core: The state of the queue.
  ///   - endings: The calls that have ended, to which this method appends.
  ///   - limit: The maximum number of calls to retry.
  func retryProducers(_ core: inout QueueCore, _ endings: inout [Ending], limit: Int = .max) {
    guard let first = state.withLock({ $0.waitQueue.takeProducer(isOver: \.isOver) }) else { return }
    let obstacle = prepare(&core, for: [first])
    core.beginGroup(time)
    let start = core.ledger.mark
    var outcome = Outcome()
    var next: QueueCall? = first
    var count = 0
    while let call = next {
      let isServed = run(call, isFirst: true, &core, &outcome)
      count += 1
      let isFull = core.frames.bytes.count >= QueueEngine.groupLimit
      // There may be room for the other waiters too.
      if isServed, isFull { scheduleNextGroup() }
      next = isServed && !isFull && count < limit ? state.withLock { $0.waitQueue.takeProducer(isOver: \.isOver) } : nil
    }
    write(outcome, since: start, obstacle, areProducers: true, &core, &endings)
  }

  /// Removes expired dead letters before calls that write, as a group of its own, so that no call fails because of it.
  ///
  /// - Parameters:
  ///   - calls: The calls.
  ///   - core: The state of the queue.
  func expireDeadLetters(before calls: [QueueCall], _ core: inout QueueCore) {
    guard let first = calls.first(where: { $0.weight == .writes || $0.weight == .blocks }), !core.isClosed else {
      return
    }
    core.ledger.advance(to: first.arrival)
    core.ledger.commit()
    guard core.ledger.hasExpiredDeadLetters, prepare(&core, for: calls) == nil else { return }
    core.beginGroup(time)
    let start = core.ledger.mark
    core.frames.beginCall()
    var records: [QueueRecord] = []
    core.ledger.expireDeadLetters(256, into: &records)
    for record in records { core.frames.append(record) }
    core.frames.finish()
    do {
      try core.log.append(core.frames, mayUseReserve: true, isDurable: false)
      core.ledger.commit()
    } catch {
      // A later group removes them. The calls will meet and report the error themselves.
      core.ledger.rollBack(to: start)
    }
  }

  /// Prepares the log for new frames.
  ///
  /// - Returns: The error if frames cannot be appended.
  private func prepare(_ core: inout QueueCore, for calls: [QueueCall]) -> (any Error)? {
    guard !core.isClosed, !core.isReady, folder.access == .readWrite,
      calls.contains(where: { $0.weight != .looks })
    else { return nil }
    do {
      try core.makeReady(time, mayUseReserve: calls.contains { $0.weight != .looks && !$0.needsRoom })
      return nil
    } catch {
      // A segment that is merely too long can still take frames.
      return core.log.isSealed ? error : nil
    }
  }

  /// Runs a call.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - isFirst: Whether the call is the first waiter for room.
  ///   - core: The state of the queue.
  ///   - outcome: The outcome of the group, to which this method adds the call if it does not wait.
  /// - Returns: Whether the call is done waiting for room.
  @discardableResult
  private func run(_ call: QueueCall, isFirst: Bool, _ core: inout QueueCore, _ outcome: inout Outcome) -> Bool {
    guard call.begin() else { return true }
    core.ledger.advance(to: call.arrival)
    let mark = core.ledger.mark
    let held = (items: core.ledger.heldItems, bytes: core.ledger.heldBytes)
    core.ledger.beginCall()
    core.frames.beginCall()
    do {
      if call.needsRoom { try checkDisk(&core) }
      let verdict = try call.body(&core)
      // Waiters come first. But a call that needs no room must not wait, since it may make room.
      if call.waitsForRoom, !isFirst, core.ledger.heldItems > held.items || core.ledger.heldBytes > held.bytes,
        state.withLock({ $0.waitQueue.hasProducers })
      {
        throw QueueRefusal.full(neverFits: false)
      }
      guard core.frames.callLength <= QueueFrame.maximumBodyLength else {
        throw folder.error(
          .valueTooLarge, during: call.operation,
          "one write must have at most \(QueueFrame.maximumBodyLength) bytes; split it into smaller ones")
      }
      if core.frames.callLength > 0 {
        outcome.framed.append((call, verdict))
      } else if verdict == .waitsForItems {
        parkReceiver(call)
      } else {
        outcome.frameless.append((call, .success(())))
      }
    } catch {
      core.ledger.rollBack(to: mark)
      core.frames.dropCall()
      if call.waitsForRoom, case QueueRefusal.full(neverFits: false) = error {
        parkProducer(call, isFirst: isFirst)
        return call.isOver
      }
      outcome.frameless.append((call, .failure(storeError(error, during: call.operation))))
    }
    return true
  }

  /// Throws if the space reserve was spent on a full disk and cannot be restored.
  private func checkDisk(_ core: inout QueueCore) throws {
    guard core.log.reserve.isSpent else { return }
    try core.log.reserve.make(
      like: core.log.segment.attributes, at: core.present, in: core.log.number)
    if core.log.reserve.isSpent { throw QueueRefusal.diskFull }
  }

  /// Writes the changes of calls, and ends the calls.
  ///
  /// - Parameters:
  ///   - outcome: The outcome of the calls.
  ///   - start: The state of the ledger before the calls.
  ///   - obstacle: The error if nothing can be written.
  ///   - areProducers: Whether the calls are the first waiters for room; defaults to `false`.
  ///   - core: The state of the queue.
  ///   - endings: The calls that have ended, to which this method appends.
  private func write(
    _ outcome: Outcome, since start: QueueLedger.Mark, _ obstacle: (any Error)?, areProducers: Bool = false,
    _ core: inout QueueCore, _ endings: inout [Ending]
  ) {
    if !outcome.framed.isEmpty, let failure = append(outcome, &core, obstacle) {
      core.ledger.rollBack(to: start)
      fail(outcome.framed.map(\.call), failure, obstacle: obstacle, areProducers: areProducers, &core, &endings)
      // They may have seen changes that were rolled back.
      let others = outcome.frameless.map(\.call)
      if !others.isEmpty { settle(others, &core, &endings) }
      return
    }
    core.ledger.commit()
    reportDeadLetters(&core)
    for (call, verdict) in outcome.framed {
      switch verdict {
      case .done: endings.append((call, .success(())))
      // All items that the call found have become dead letters.
      case .waitsForItems: parkReceiver(call)
      }
    }
    endings += outcome.frameless
  }

  private func append(_ outcome: Outcome, _ core: inout QueueCore, _ obstacle: (any Error)?) -> (any Error)? {
    do {
      if let obstacle { throw obstacle }
      core.frames.finish()
      try core.log.append(core.frames, mayUseReserve: outcome.framed.allSatisfy { !$0.call.needsRoom })
      return nil
    } catch {
      return error
    }
  }

  /// Ends calls whose changes could not be written, or retries them one by one, since the changes of one call may fit
  /// when those of all do not.
  private func fail(
    _ calls: [QueueCall], _ error: any Error, obstacle: (any Error)?, areProducers: Bool, _ core: inout QueueCore,
    _ endings: inout [Ending]
  ) {
    guard calls.count == 1 || core.log.isSealed else {
      if areProducers {
        // In order, before all other waiters.
        for call in calls.reversed() { parkProducer(call, isFirst: true) }
        for _ in calls { retryProducers(&core, &endings, limit: 1) }
      } else {
        for call in calls { settle([call], &core, &endings) }
      }
      return
    }
    let outcome: StoreError.Outcome = core.log.isSealed && obstacle == nil ? .unknown : .nothingChanged
    for call in calls {
      endings.append((call, .failure(storeError(error, during: call.operation, outcome: outcome))))
    }
  }

  private func reportDeadLetters(_ core: inout QueueCore) {
    guard !core.ledger.newDeadLetters.isEmpty else { return }
    let deadLetters = core.ledger.newDeadLetters
    core.ledger.newDeadLetters = []
    if let onDeath { for deadLetter in deadLetters { onDeath(deadLetter) } }
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

  private func parkReceiver(_ call: QueueCall) {
    call.park()
    let waits = state.withLock { $0.waitQueue.parkReceiver(call, isOver: \.isOver) }
    if !waits { call.end(.failure(information.closedError(for: call.operation))) }
  }

  private func parkProducer(_ call: QueueCall, isFirst: Bool) {
    call.park()
    let waits = state.withLock { $0.waitQueue.parkProducer(call, isFirst: isFirst, isOver: \.isOver) }
    if !waits { call.end(.failure(information.closedError(for: call.operation))) }
  }
}

/// A timer that fires at a deadline, and reads no clock until then.
final class DeadlineTimer: Sendable {
  private struct Setting: Sendable {
    var deadline: Int64
    var task: Task<Void, Never>
  }

  private let clock: any Clock<Duration>
  private let setting = Mutex<Setting?>(nil)

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
        do {
          try await clock.sleep(for: .microseconds(overflows ? .max : max(difference, 1)))
        } catch {
          // The timer was set to another deadline, or cancelled.
          return
        }
        self?.forget(deadline)
        action()
      }
      setting = Setting(deadline: deadline, task: task)
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
    let displaced = setting.withLock { setting -> Task<Void, Never>? in
      defer { setting = nil }
      return setting?.task
    }
    displaced?.cancel()
  }
}
