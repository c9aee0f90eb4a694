import Larder
import LarderFiles
import Synchronization

/// How calls that came together become one commit.
extension QueueEngine {
  /// The most bytes of frames that are written at once.
  private static let groupLimit = 8 << 20

  /// The results of the calls of a group.
  private struct Outcome {
    /// Those that changed something, which must be written.
    var framed: [(call: QueueCall, verdict: QueueCall.Verdict)] = []
    /// Those that did not.
    var frameless: [Ending] = []
  }

  /// Runs calls, and writes what they change.
  ///
  /// - Parameters:
  ///   - calls: The calls, at least one.
  ///   - core: What they work on.
  ///   - endings: Gets those that are over.
  func settle(_ calls: [QueueCall], _ core: inout QueueCore, _ endings: inout [Ending]) {
    let obstacle = prepare(&core, for: calls)
    core.beginGroup(time)
    // Before anything can be undone.
    if let first = calls.first { core.ledger.advance(to: first.arrival) }
    core.ledger.commit()
    let start = core.ledger.mark
    var outcome = Outcome()
    for (index, call) in calls.enumerated() {
      let isFull = core.frames.bytes.count >= QueueEngine.groupLimit
      guard !isFull, index == 0 || calls[index - 1].weight != .alone && call.weight != .alone else {
        state.withLock { $0.line.giveBack(calls[index...]) }
        break
      }
      run(call, isFirst: false, &core, &outcome)
    }
    write(outcome, since: start, obstacle, &core, &endings)
  }

  /// Retries the calls that wait for room, in their order, up to the first for which there is none.
  ///
  /// - Parameters:
  ///   - core: What they work on.
  ///   - endings: Gets those that are over.
  ///   - limit: The most to try.
  func retryProducers(_ core: inout QueueCore, _ endings: inout [Ending], limit: Int = .max) {
    guard let first = state.withLock({ $0.line.takeProducer(isOver: \.isOver) }) else { return }
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
      // There may be room for the others too.
      if isServed, isFull { goOn() }
      next = isServed && !isFull && count < limit ? state.withLock { $0.line.takeProducer(isOver: \.isOver) } : nil
    }
    write(outcome, since: start, obstacle, areProducers: true, &core, &endings)
  }

  /// Removes dead letters whose time is over, before calls that write: as a group of its own, since no call is to fail by it.
  ///
  /// - Parameters:
  ///   - calls: The calls.
  ///   - core: What they work on.
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
      // They go with a later group; what is wrong the calls are told themselves.
      core.ledger.rollBack(to: start)
    }
  }

  /// Sees to it that frames can be appended.
  ///
  /// - Returns: Why they cannot.
  private func prepare(_ core: inout QueueCore, for calls: [QueueCall]) -> (any Error)? {
    guard !core.isClosed, !core.isReady, folder.access == .readWrite,
      calls.contains(where: { $0.weight != .looks })
    else { return nil }
    do {
      try core.makeReady(time, mayUseReserve: calls.contains { $0.weight != .looks && !$0.needsRoom })
      return nil
    } catch {
      // A segment that is only long can still take something.
      return core.log.isSealed ? error : nil
    }
  }

  /// Runs a call.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - isFirst: Whether it is the first waiter for room.
  ///   - core: What it works on.
  ///   - outcome: Gets what became of it, unless it waits.
  /// - Returns: Whether it does not wait for room.
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
      // Waiters come first; but a call that takes no room does not wait, since it may be what gives room.
      if call.waitsForRoom, !isFirst, core.ledger.heldItems > held.items || core.ledger.heldBytes > held.bytes,
        state.withLock({ $0.line.hasProducers })
      {
        throw QueueRefusal.full(neverFits: false)
      }
      guard core.frames.callLength <= QueueFrame.maximumBodyLength else {
        throw folder.error(
          .valueTooLarge, during: call.operation,
          "what is written at once has at most \(QueueFrame.maximumBodyLength) bytes")
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

  /// Refuses what takes room as long as the reserve of a full disk is not there again.
  private func checkDisk(_ core: inout QueueCore) throws {
    guard core.log.reserve.isSpent else { return }
    try core.log.reserve.make(
      like: core.log.segment.attributes, at: core.present, in: core.log.number)
    if core.log.reserve.isSpent { throw QueueRefusal.diskFull }
  }

  /// Writes what calls have changed, and ends them.
  ///
  /// - Parameters:
  ///   - outcome: What became of the calls.
  ///   - start: Where the ledger was before them.
  ///   - obstacle: Why nothing can be written.
  ///   - areProducers: Whether the calls are the first waiters for room; defaults to `false`.
  ///   - core: What they work on.
  ///   - endings: Gets those that are over.
  private func write(
    _ outcome: Outcome, since start: QueueLedger.Mark, _ obstacle: (any Error)?, areProducers: Bool = false,
    _ core: inout QueueCore, _ endings: inout [Ending]
  ) {
    if !outcome.framed.isEmpty, let failure = append(outcome, &core, obstacle) {
      core.ledger.rollBack(to: start)
      fail(outcome.framed.map(\.call), failure, obstacle: obstacle, areProducers: areProducers, &core, &endings)
      // They may have seen what has not happened.
      let others = outcome.frameless.map(\.call)
      if !others.isEmpty { settle(others, &core, &endings) }
      return
    }
    core.ledger.commit()
    tellDeaths(&core)
    for (call, verdict) in outcome.framed {
      switch verdict {
      case .done: endings.append((call, .success(())))
      // All that it found has become dead letters.
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

  /// Ends calls whose changes could not be written, or tries them one by one: what one wants may be too much where what
  /// another wants is not.
  private func fail(
    _ calls: [QueueCall], _ error: any Error, obstacle: (any Error)?, areProducers: Bool, _ core: inout QueueCore,
    _ endings: inout [Ending]
  ) {
    guard calls.count == 1 || core.log.isSealed else {
      if areProducers {
        // In their order, before all other waiters.
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

  private func tellDeaths(_ core: inout QueueCore) {
    guard !core.ledger.newDeaths.isEmpty else { return }
    let deaths = core.ledger.newDeaths
    core.ledger.newDeaths = []
    if let onDeath { for death in deaths { onDeath(death) } }
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
        "the receipt is not that of a lease that goes on: it has ended, or the item was replaced or has gone")
    case QueueRefusal.full(let neverFits):
      return folder.error(
        .full, during: operation,
        neverFits ? "that is more than the queue may hold" : "the queue holds as much as it may",
        isRetryable: !neverFits)
    case QueueRefusal.diskFull:
      return folder.error(
        .full, during: operation,
        "the disk is full: until the queue has emptied enough of itself, what is left is kept for taking items out",
        isRetryable: true)
    case QueueRefusal.conflict(let key):
      return folder.error(
        .conflict, during: operation, key: key, "an item with the key of the dead letter is in the queue")
    case QueueRefusal.exhausted:
      return folder.error(.full, during: operation, "the queue has given out every sequence number; begin a new one")
    default:
      return error
    }
  }

  private func parkReceiver(_ call: QueueCall) {
    call.park()
    let waits = state.withLock { $0.line.parkReceiver(call, isOver: \.isOver) }
    if !waits { call.end(.failure(information.closedError(for: call.operation))) }
  }

  private func parkProducer(_ call: QueueCall, isFirst: Bool) {
    call.park()
    let waits = state.withLock { $0.line.parkProducer(call, isFirst: isFirst, isOver: \.isOver) }
    if !waits { call.end(.failure(information.closedError(for: call.operation))) }
  }
}
