import Larder
import LarderFiles
import Synchronization

/// Serves the calls of a queue, with one commit for all calls that wait at the same time.
///
/// If the engine is idle, a call that need not wait for the disk is served in its own task. All other calls are served
/// on a thread of the engine. A call that changes something ends when the change is as durable as the queue promises. A
/// call that only reads ends when everything it read is that durable, so no call sees a change that can still fail.
///
/// The extension turns a group of calls into one commit.
final class QueueEngine: Sendable {
  let information: StoreInformation
  let folder: QueueFolder
  let time: QueueTime
  private let policy: QueueCapacity.Policy
  private let executor = DispatchQueueExecutor(label: "Larder.QueueStore")
  private let reader = DispatchQueueExecutor(label: "Larder.QueueStore.reading")
  private let timer: DeadlineTimer
  /// A closure that the engine calls for each item that becomes a dead letter.
  let onDeath: (@Sendable (QueueDeath) -> Void)?

  /// A call with its result.
  typealias Ending = (call: QueueCall, result: Result<Void, any Error>)

  struct State: Sendable {
    /// Calls that are done, but whose callers resume only after space was reclaimed.
    ///
    /// This way no work continues in the background after a call returns.
    var endings: [Ending] = []
    var waitQueue = WaitQueue<QueueCall>()
    /// The state of the queue; `nil` while a thread works on it.
    var core: QueueCore?
  }

  let state: Mutex<State>
  private let files: SegmentFiles
  let running = RunningOperations()

  init(
    _ opened: QueueRecovery.Opened, information: StoreInformation, policy: QueueCapacity.Policy,
    clock: any Clock<Duration>, time: QueueTime, onDeath: (@Sendable (QueueDeath) -> Void)?
  ) {
    self.information = information
    self.policy = policy
    self.time = time
    self.onDeath = onDeath
    folder = opened.log.folder
    files = opened.log.files
    timer = DeadlineTimer(clock: clock)
    state = Mutex(State(core: QueueCore(opened)))
  }

  deinit {
    timer.cancel()
  }

  // MARK: Calls

  /// Runs a closure on the queue's state, and returns when its changes are committed.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - weight: The kind of work that `body` does.
  ///   - needsRoom: Whether `body` may need room, and so waits if there is none and the policy is to wait; defaults to
  ///     `false`.
  ///   - ignoresCancellation: Whether the call runs in a cancelled task too; defaults to `false`.
  ///   - body: A closure that returns `nil` to run again when there are waiting items. It may run several times; only
  ///     the last time counts.
  /// - Throws: ``StoreError``; `CancellationError`; the error of `body`.
  func perform<Result: Sendable>(
    _ operation: StoreOperation, _ weight: QueueCall.Weight, needsRoom: Bool = false,
    ignoresCancellation: Bool = false, _ body: @escaping @Sendable (inout QueueCore) throws -> Result?
  ) async throws -> Result {
    if weight == .writes || weight == .blocks { try information.checkWritable(for: operation) }
    let box = ResultBox<Result>()
    let call = QueueCall(
      operation, weight, at: time.steady(), needsRoom: needsRoom, waitsForRoom: needsRoom && policy == .wait
    ) { core in
      guard let result = try body(&core) else { return .waitsForItems }
      box.set(result)
      return .done
    }
    if !ignoresCancellation { try Task.checkCancellation() }
    submit(call)
    if let ending = call.ending {
      // The call was served in this task.
      try ending.get()
    } else if ignoresCancellation {
      try await call.wait()
    } else {
      try await withTaskCancellationHandler {
        try await call.wait()
      } onCancel: {
        call.cancel()
        // The next waiter for room may have room now.
        if call.waitsForRoom { wake() }
      }
    }
    guard let result = box.take() else { throw information.closedError(for: operation) }
    return result
  }

  /// Runs one step of a maintenance operation, between other calls.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - weight: The kind of work that `body` does; defaults to reading memory.
  ///   - body: A closure that does the step.
  /// - Throws: ``StoreError``.
  func maintain<Result: Sendable>(
    _ operation: StoreOperation, _ weight: QueueCall.Weight = .looks,
    _ body: @escaping @Sendable (inout QueueCore) throws -> Result
  ) async throws -> Result {
    try await perform(operation, weight, ignoresCancellation: true) { try body(&$0) }
  }

  /// Finds items, and reads their payloads off the cooperative pool.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - item: A closure that returns the item of a result of `find`.
  ///   - find: A closure that finds the items.
  /// - Returns: The results of `find` with their payloads, which are `nil` if they are damaged.
  /// - Throws: ``StoreError``, with the key of the first item that cannot be read.
  func payloads<Found: Sendable>(
    _ operation: StoreOperation, of item: @Sendable (Found) -> QueueItem,
    _ find: @escaping @Sendable (inout QueueCore) -> [Found]
  ) async throws -> [(found: Found, payload: ArraySlice<UInt8>?)] {
    try await readablePayloads(operation, of: item, find).map { ($0, try $1.get()) }
  }

  /// Finds items, and reads as many of their payloads as possible; see ``payloads(_:of:_:)``.
  ///
  /// - Returns: The results of `find` with their payloads, or with the errors of reading them.
  /// - Throws: ``StoreError`` if reading fails for a reason that concerns no single item.
  func readablePayloads<Found: Sendable>(
    _ operation: StoreOperation, of item: @Sendable (Found) -> QueueItem,
    _ find: @escaping @Sendable (inout QueueCore) -> [Found]
  ) async throws -> [(found: Found, payload: Result<ArraySlice<UInt8>?, StoreError>)] {
    let (files, folder) = (files, folder)
    var missing: Set<UInt32> = []
    while true {
      let found = try await perform(operation, .looks, ignoresCancellation: true) { find(&$0) }
      guard !found.isEmpty else { return [] }
      let items = found.map(item)
      let places = items.map(\.place)
      do throws(FileError) {
        let payloads = try await reader.run { () throws(FileError) in try files.readEach(places) }
        return zip(found, zip(items, payloads)).map { found, read in
          let payload = read.1.mapError { folder.unreadableError(of: read.0.key, during: operation, $0) }
          return (found, payload)
        }
      } catch {
        // A segment is removed when its items are gone or were moved, so the items are looked up again. If they are
        // still in that segment, another program has removed it.
        let lost = folder.hasLost(error) ? places.first { folder.segmentPath($0.segment) == error.path }?.segment : nil
        guard let lost, missing.insert(lost).inserted else {
          throw StoreError(
            error, during: operation, store: folder.name, message: "the files of the queue could not be read")
        }
      }
    }
  }

  /// Reads the payloads of leased items and transforms them, off the cooperative pool.
  ///
  /// - Parameters:
  ///   - leased: The items.
  ///   - body: A closure that transforms an item with its payload, `nil` if it is damaged, or with the error of reading
  ///     it.
  /// - Throws: `FileError` if no item can be read, for a reason that concerns none of them.
  func readings<Value: Sendable>(
    of leased: [LeasedItem],
    _ body: @escaping @Sendable (LeasedItem, Result<ArraySlice<UInt8>?, StoreError>) -> Value
  ) async throws(FileError) -> [Value] {
    let (files, folder) = (files, folder)
    func read(_ leased: [LeasedItem], evenIfLost: Bool) async throws(FileError) -> [Value] {
      try await reader.run { () throws(FileError) in
        zip(leased, try files.readEach(leased.map(\.item.place), evenIfLost: evenIfLost)).map { one, payload in
          body(one, payload.mapError { folder.unreadableError(of: one.item.key, during: .receive, $0) })
        }
      }
    }
    var leased = leased
    for _ in 0..<4 {
      do throws(FileError) {
        return try await read(leased, evenIfLost: false)
      } catch {
        // If a segment is missing, its items have been moved to another one.
        guard folder.hasLost(error) else { throw error }
        guard let moved = await located(leased) else { break }
        leased = moved
      }
    }
    return try await read(leased, evenIfLost: true)
  }

  /// Returns leased items with their current locations, or `nil` if the queue is closed.
  private func located(_ leased: [LeasedItem]) async -> [LeasedItem]? {
    do {
      return try await perform(.receive, .looks, ignoresCancellation: true) { core in
        leased.map { one in
          var one = one
          one.item.place = core.ledger.items[one.item.sequence]?.place ?? one.item.place
          return one
        }
      }
    } catch {
      // Reading reports the items as unreadable.
      return nil
    }
  }

  // MARK: Serving

  private func submit(_ call: QueueCall) {
    var core: QueueCore?
    let mustStart = state.withLock { state in
      guard state.waitQueue.arrive(call) == .begins else { return false }
      if canServeHere(call) { swap(&core, &state.core) } else { state.waitQueue.putBack([call]) }
      return true
    }
    guard mustStart else { return }
    guard core != nil else { return startCommitting() }
    serveHere(call, &core)
  }

  /// Whether a call can be served without waiting for the disk, if frames can be appended.
  private func canServeHere(_ call: QueueCall) -> Bool {
    switch call.weight {
    case .looks: true
    case .writes: folder.durability == .buffered
    case .blocks, .alone: false
    }
  }

  private func serveHere(_ call: QueueCall, _ taken: inout QueueCore?) {
    guard var core = taken.take() else { return }
    // Checked here, after the core was taken: checking it under the lock would copy it.
    guard call.weight == .looks || core.isReady else {
      taken = consume core
      state.withLock { state in
        swap(&state.core, &taken)
        state.waitQueue.putBack([call])
      }
      return startCommitting()
    }
    var endings: [Ending] = []
    expireDeadLetters(before: [call], &core)
    settle([call], &core, &endings)
    let needsReclaiming = isReclaimingDue(&core)
    followUp(&core)
    taken = consume core
    // Work that waits for the disk, and calls that have arrived since, are left to the engine's thread.
    let noOp = noOpCall
    let mustContinue = state.withLock { state in
      swap(&state.core, &taken)
      if needsReclaiming {
        state.endings += endings
        endings = []
      }
      // Waiters for room are also retried there.
      if needsReclaiming || state.waitQueue.hasProducers { _ = state.waitQueue.enter(noOp) }
      return state.waitQueue.finish()
    }
    for (call, result) in endings { call.end(result) }
    if mustContinue { startCommitting() }
  }

  /// A no-op call that processes expired deadlines.
  private var noOpCall: QueueCall { QueueCall(.receive, .looks, at: time.steady()) { _ in .done } }

  /// Ensures that another group follows the current one.
  func scheduleNextGroup() {
    let noOp = noOpCall
    _ = state.withLock { $0.waitQueue.enter(noOp) }
  }

  /// Ensures that a group runs soon.
  private func wake() {
    let noOp = noOpCall
    if state.withLock({ $0.waitQueue.enter(noOp) }) { startCommitting() }
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
        let group = state.waitQueue.takeGroup()
        if group.isEmpty { state.core = core }
        swap(&endings, &state.endings)
        return group
      }
      guard !group.isEmpty else { return }
      expireDeadLetters(before: group, &core)
      settle(group, &core, &endings)
      retryProducers(&core, &endings)
      reclaim(&core)
      if isReclaimingDue(&core) { scheduleNextGroup() }
      followUp(&core)
      for (call, result) in endings { call.end(result) }
      taken = consume core
    }
  }

  /// Returns waiting receivers to the wait queue if items wait, or else sets the timer to the next deadline.
  private func followUp(_ core: inout QueueCore) {
    let waiting = core.leasableCount
    let hasReceivers = state.withLock { state in
      if waiting > 0 { state.waitQueue.returnReceivers(waiting) }
      return state.waitQueue.hasReceivers
    }
    // Space that is reclaimed on a full disk has no deadline.
    let retry = core.ledger.counts.waiting > waiting ? time.steady().addingSaturating(SpaceReserve.pause) : nil
    if hasReceivers, let deadline = [core.ledger.nextDeadline, retry].compactMap(\.self).min() {
      timer.set(deadline, now: time.steady()) { [weak self] in self?.wake() }
    } else {
      timer.cancel()
    }
  }

  // MARK: Space

  private func isReclaimingDue(_ core: inout QueueCore) -> Bool {
    guard !core.isClosed, core.log.needsReclaiming(&core.ledger) else { return false }
    // Removing files needs no room, so it does not wait for other attempts that failed.
    return core.log.hasRemovableLeftovers || core.log.neededSize >= core.reclaimingSize
  }

  /// Reclaims space in one bounded step, since other calls wait.
  private func reclaim(_ core: inout QueueCore) {
    guard isReclaimingDue(&core) else { return }
    do {
      let isOfUse = try core.log.reclaim(&core.ledger, clockOffset: time.offset)
      core.reclaimingSize = isOfUse ? 0 : core.log.neededSize + core.log.segmentLimit / 4
    } catch {
      // Only space is lost. The next attempt waits, since it would probably fail as well.
      core.reclaimingSize = core.log.neededSize + core.log.segmentLimit / 4
    }
  }

  // MARK: Closing

  /// Ends waiting calls, waits for all others, and closes the files.
  func close() async throws {
    let waiting = state.withLock { $0.waitQueue.close() }
    for call in waiting { call.end(.failure(information.closedError(for: call.operation))) }
    await running.close()
    timer.cancel()
    let (folder, time) = (folder, time)
    _ = try await perform(.close, .alone, ignoresCancellation: true) { core in
      guard !core.isClosed else { return true }
      try folder.reportingFileErrors(during: .close, message: "the queue could not be closed cleanly") {
        try core.close(time)
      }
      return true
    }
  }
}
