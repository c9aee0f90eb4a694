import Larder
import LarderFiles
import Synchronization

/// Serves the calls of a queue: one after another, those that come meanwhile together, with one commit for all of them.
///
/// Whoever brings a call while nothing is done serves it, in the own task where that does not wait for the disk. Anything
/// else is done on a thread of the engine's own. A call is over when what it has changed is as durable as the queue
/// promises; and where it has only looked, when what it has seen is. So nothing is seen that could still fail.
final class QueueEngine: Sendable {
  /// The most bytes of frames that are written at once.
  private static let groupLimit = 8 << 20

  let information: StoreInformation
  private let folder: QueueFolder
  private let policy: QueueCapacity.Policy
  private let executor = DispatchQueueExecutor(label: "Larder.QueueStore")
  private let reader = DispatchQueueExecutor(label: "Larder.QueueStore.reading")
  private let alarm: QueueAlarm
  /// Tells the time, in microseconds since 1970.
  private let now: @Sendable () -> Int64

  /// A call that is over, and how.
  private typealias Ending = (call: QueueCall, result: Result<Void, any Error>)

  private struct State: Sendable {
    /// Calls that are over, but whose callers are told only when space has been given back: nothing goes on behind
    /// their backs.
    var endings: [Ending] = []
    var line = QueueLine<QueueCall>()
    /// Whoever is busy has taken it out.
    var core: QueueCore?
  }

  private let state: Mutex<State>
  private let files: SegmentFiles
  let running = RunningOperations()

  init(
    _ opened: QueueRecovery.Opened, information: StoreInformation, policy: QueueCapacity.Policy,
    clock: any Clock<Duration>, now: @escaping @Sendable () -> Int64
  ) {
    self.information = information
    self.policy = policy
    self.now = now
    folder = opened.log.folder
    files = opened.log.files
    alarm = QueueAlarm(clock: clock)
    state = Mutex(State(core: QueueCore(opened)))
  }

  deinit {
    alarm.cancel()
  }

  // MARK: Calls

  /// Asks for something, and waits until it is done.
  ///
  /// - Parameters:
  ///   - operation: What is asked for.
  ///   - weight: What `body` may do.
  ///   - waitsForRoom: Whether it waits where there is no room, if that is the policy.
  ///   - ignoresCancellation: Whether it is done in a cancelled task too.
  ///   - body: Does it, and gives `nil` to be called again when there are items that wait. It may be called more than
  ///     once; then only the last time counts.
  /// - Throws: ``StoreError``; `CancellationError`; what `body` throws.
  func perform<Result: Sendable>(
    _ operation: StoreOperation, _ weight: QueueCall.Weight, waitsForRoom: Bool = false,
    ignoresCancellation: Bool = false, _ body: @escaping @Sendable (inout QueueCore) throws -> Result?
  ) async throws -> Result {
    if weight == .writes || weight == .blocks { try information.checkWritable(for: operation) }
    let box = ResultBox<Result>()
    let call = QueueCall(operation, weight, waitsForRoom: waitsForRoom && policy == .wait) { core in
      guard let result = try body(&core) else { return .waitsForItems }
      box.set(result)
      return .done
    }
    if !ignoresCancellation { try Task.checkCancellation() }
    submit(call)
    if let ending = call.ending {
      // It was served here.
      try ending.get()
    } else if ignoresCancellation {
      try await call.wait()
    } else {
      try await withTaskCancellationHandler {
        try await call.wait()
      } onCancel: {
        call.cancel()
        if call.waitsForRoom { letProducersIn() }
      }
    }
    guard let result = box.take() else { throw information.closedError(for: operation) }
    return result
  }

  /// Does what an operator asks for, while no other call runs.
  func maintain<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (inout QueueCore) throws -> Result
  ) async throws -> Result {
    guard running.begin() else { throw information.closedError(for: operation) }
    defer { running.end() }
    return try await perform(operation, .alone, ignoresCancellation: true) { try body(&$0) }
  }

  /// Finds items, and reads their payloads off the cooperative pool.
  ///
  /// - Parameters:
  ///   - operation: What is asked for.
  ///   - find: Finds the items.
  ///   - item: The item of what was found.
  /// - Returns: What was found, with its payloads, `nil` where one is damaged.
  /// - Throws: ``StoreError``.
  func payloads<Found: Sendable>(
    _ operation: StoreOperation, of item: @Sendable (Found) -> QueueItem,
    _ find: @escaping @Sendable (inout QueueCore) -> [Found]
  ) async throws -> [(found: Found, payload: ArraySlice<UInt8>?)] {
    let (files, folder) = (files, folder)
    var missing: Set<UInt32> = []
    while true {
      let found = try await perform(operation, .looks, ignoresCancellation: true) { find(&$0) }
      guard !found.isEmpty else { return [] }
      let places = found.map { item($0).place }
      do throws(FileError) {
        return Array(zip(found, try await reader.run { () throws(FileError) in try files.read(places) }))
      } catch {
        // A segment is removed when what was in it has gone or was written elsewhere: then this is looked up again. Where
        // items are in it even so, somebody else has removed it.
        let lost = folder.hasLost(error) ? places.first { folder.segmentPath($0.segment) == error.path }?.segment : nil
        guard let lost, missing.insert(lost).inserted else {
          throw StoreError(
            error, during: operation, store: folder.name, message: "the files of the queue could not be read")
        }
      }
    }
  }

  // MARK: Serving

  private func submit(_ call: QueueCall) {
    var core: QueueCore?
    let mustStart = state.withLock { state in
      guard state.line.arrive(call) == .begins else { return false }
      if canServeHere(call) { swap(&core, &state.core) } else { state.line.giveBack([call]) }
      return true
    }
    guard mustStart else { return }
    guard core != nil else { return startCommitting() }
    serveHere(call, &core)
  }

  /// Whether a call can be served without waiting for the disk, where frames can be appended.
  private func canServeHere(_ call: QueueCall) -> Bool {
    switch call.weight {
    case .looks: true
    case .writes: folder.durability == .buffered
    case .blocks, .alone: false
    }
  }

  private func serveHere(_ call: QueueCall, _ taken: inout QueueCore?) {
    guard var core = taken.take() else { return }
    // Looked at here, where the core has been taken: to look into it under the lock would copy it.
    guard call.weight == .looks || core.log.isReady else {
      taken = consume core
      state.withLock { state in
        swap(&state.core, &taken)
        state.line.giveBack([call])
      }
      return startCommitting()
    }
    var endings: [Ending] = []
    settle([call], &core, &endings)
    let needsReclaiming = isReclaimingDue(core)
    followUp(&core)
    taken = consume core
    // What must wait for the disk is done elsewhere, and so is whatever has come meanwhile.
    let mustGoOn = state.withLock { state in
      swap(&state.core, &taken)
      if needsReclaiming {
        state.endings += endings
        endings = []
        _ = state.line.enter(QueueEngine.noCall)
      }
      return state.line.finish()
    }
    for (call, result) in endings { call.end(result) }
    if mustGoOn { startCommitting() }
  }

  /// A call of nobody's, which lets the time go on.
  private static var noCall: QueueCall { QueueCall(.receive, .blocks) { _ in .done } }

  private func wake() {
    if state.withLock({ $0.line.enter(QueueEngine.noCall) }) { startCommitting() }
  }

  /// Lets those who wait for room try again: one of them does not want it any more.
  private func letProducersIn() {
    let mustStart = state.withLock { state in
      guard state.line.hasProducers else { return false }
      state.line.reconsiderProducers()
      return state.line.enter(QueueEngine.noCall)
    }
    if mustStart { startCommitting() }
  }

  private func startCommitting() {
    executor.start { self.commitGroups() }
  }

  private func commitGroups() {
    var taken: QueueCore?
    state.withLock { swap(&taken, &$0.core) }
    while var core = taken.take() {
      var endings: [Ending] = []
      let group = state.withLock { state -> [QueueCall] in
        let group = state.line.takeGroup()
        if group.isEmpty { state.core = core }
        swap(&endings, &state.endings)
        return group
      }
      guard !group.isEmpty else { return }
      settle(group, &core, &endings)
      reclaim(&core)
      followUp(&core)
      for (call, result) in endings { call.end(result) }
      taken = consume core
    }
  }

  /// Runs calls, and writes what they change.
  ///
  /// - Parameters:
  ///   - calls: The calls.
  ///   - core: What they work on.
  ///   - endings: Gets those that are over.
  private func settle(_ calls: [QueueCall], _ core: inout QueueCore, _ endings: inout [Ending]) {
    let obstacle = calls.contains { $0.weight != .looks } ? prepare(&core) : nil
    core.ledger.advance(to: now())
    core.beginGroup()
    let start = core.ledger.mark
    let room = (core.ledger.counts.live, core.ledger.liveBytes)
    var isRoomAwaited = state.withLock { $0.line.hasProducers }
    var framed: [(call: QueueCall, verdict: QueueCall.Verdict)] = []
    var frameless: [Ending] = []

    for (index, call) in calls.enumerated() {
      let isFull = core.frames.bytes.count >= QueueEngine.groupLimit
      guard !isFull, index == 0 || calls[index - 1].weight != .alone && call.weight != .alone else {
        state.withLock { $0.line.giveBack(calls[index...]) }
        break
      }
      guard call.begin() else { continue }
      // Who came first is served first.
      if isRoomAwaited, call.hasWaitedForRoom {
        park(call, forRoom: true)
        continue
      }
      let mark = core.ledger.mark
      let held = (core.ledger.counts.live, core.ledger.liveBytes)
      core.ledger.beginCall()
      core.frames.beginFrame()
      do {
        let verdict = try call.body(&core)
        // What takes no room does not wait behind those who want some: it may be what gives it to them.
        if isRoomAwaited, call.waitsForRoom, core.ledger.counts.live > held.0 || core.ledger.liveBytes > held.1 {
          throw QueueRefusal.full(neverFits: false)
        }
        guard core.frames.bodyLength <= QueueFrame.maximumBodyLength else {
          throw folder.error(
            .valueTooLarge, during: call.operation,
            "what is written at once has at most \(QueueFrame.maximumBodyLength) bytes")
        }
        if core.frames.bodyLength > 0 {
          core.frames.endFrame()
          framed.append((call, verdict))
        } else {
          core.frames.dropFrame()
          if verdict == .waitsForItems { park(call, forRoom: false) } else { frameless.append((call, .success(()))) }
        }
      } catch {
        core.ledger.rollBack(to: mark)
        core.frames.dropFrame()
        if call.waitsForRoom, case QueueRefusal.full(neverFits: false) = error {
          isRoomAwaited = true
          park(call, forRoom: true)
        } else {
          frameless.append((call, .failure(storeError(error, during: call.operation))))
        }
      }
    }
    if framed.isEmpty {
      core.ledger.commit()
    } else if let failure = append(&core, obstacle) {
      core.ledger.rollBack(to: start)
      fail(framed.map(\.call), failure, obstacle: obstacle, &core, &endings)
      // They may have seen what has not happened.
      let others = frameless.map(\.call)
      if !others.isEmpty { settle(others, &core, &endings) }
      // The room that they had taken is there again.
      state.withLock { $0.line.returnProducers() }
      return
    } else {
      core.ledger.commit()
    }
    for (call, verdict) in framed {
      switch verdict {
      case .done: endings.append((call, .success(())))
      // All that it found has become dead letters.
      case .waitsForItems: park(call, forRoom: false)
      }
    }
    endings += frameless
    if core.ledger.counts.live < room.0 || core.ledger.liveBytes < room.1 {
      state.withLock { $0.line.returnProducers() }
    }
  }

  /// Sees to it that frames can be appended.
  ///
  /// - Returns: Why they cannot.
  private func prepare(_ core: inout QueueCore) -> (any Error)? {
    guard !core.isClosed, !core.log.isReady else { return nil }
    do {
      try core.makeReady()
      return nil
    } catch {
      // A segment that is only long can still take something.
      return core.log.isSealed ? error : nil
    }
  }

  private func append(_ core: inout QueueCore, _ obstacle: (any Error)?) -> (any Error)? {
    do {
      if let obstacle { throw obstacle }
      try core.log.append(core.frames)
      return nil
    } catch {
      return error
    }
  }

  /// Ends calls whose changes could not be written, or tries them one by one: what one wants may be too much where what
  /// another wants is not.
  private func fail(
    _ calls: [QueueCall], _ error: any Error, obstacle: (any Error)?, _ core: inout QueueCore,
    _ endings: inout [Ending]
  ) {
    guard calls.count == 1 || core.log.isSealed else {
      for call in calls { settle([call], &core, &endings) }
      return
    }
    let outcome: StoreError.Outcome = core.log.isSealed && obstacle == nil ? .unknown : .nothingChanged
    for call in calls {
      endings.append((call, .failure(storeError(error, during: call.operation, outcome: outcome))))
    }
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
    case QueueRefusal.conflict(let key):
      return folder.error(
        .conflict, during: operation, key: key, "an item with the key of the dead letter is in the queue")
    default:
      return error
    }
  }

  private func park(_ call: QueueCall, forRoom: Bool) {
    call.park(forRoom: forRoom)
    let waits = state.withLock { state in
      forRoom
        ? state.line.parkProducer(call, isOver: \.isOver) : state.line.parkReceiver(call, isOver: \.isOver)
    }
    if !waits { call.end(.failure(information.closedError(for: call.operation))) }
  }

  /// Lets those come back who wait for items, where there are some, and sets the alarm for when there will be.
  private func followUp(_ core: inout QueueCore) {
    let waiting = core.ledger.counts.waiting
    let hasReceivers = state.withLock { state in
      if waiting > 0 { state.line.returnReceivers(waiting) }
      return state.line.hasReceivers
    }
    if hasReceivers, let deadline = core.ledger.nextDeadline {
      alarm.set(deadline, now: core.ledger.now) { [weak self] in self?.wake() }
    } else {
      alarm.cancel()
    }
  }

  // MARK: Space

  private func isReclaimingDue(_ core: QueueCore) -> Bool {
    !core.isClosed && core.log.needsReclaiming(core.ledger) && core.log.totalSize >= core.reclaimingSize
  }

  private func reclaim(_ core: inout QueueCore) {
    // A bounded number of times: others are waiting.
    for _ in 0..<4 where isReclaimingDue(core) {
      do {
        try core.log.reclaim(&core.ledger)
        core.reclaimingSize = 0
      } catch {
        // Nothing is lost but space. Not at once again: what failed will probably go on failing.
        core.reclaimingSize = core.log.totalSize + folder.segmentSize / 4
      }
    }
  }

  // MARK: Closing

  /// Ends the calls that wait for something, waits for the others, and closes the files.
  func close() async throws {
    let waiting = state.withLock { $0.line.close() }
    for call in waiting { call.end(.failure(information.closedError(for: call.operation))) }
    await running.close()
    alarm.cancel()
    let folder = folder
    _ = try await perform(.close, .alone, ignoresCancellation: true) { core in
      guard !core.isClosed else { return true }
      try folder.reportingFileErrors(during: .close, message: "the queue could not be closed cleanly") {
        try core.close()
      }
      return true
    }
  }
}
