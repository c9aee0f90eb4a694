import Larder
import LarderFiles

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
  /// The observers of items that become dead letters.
  let deadLetterObservers = DeadLetterObservers()
  private let firstDeadLetterObserver: StoreObservation?

  /// A call with its result.
  typealias Ending = (call: QueueCall, result: Result<Void, any Error>)

  struct State: Sendable {
    var calls = CallQueue<QueueCall>()
    /// The state of the queue; `nil` while a thread works on it.
    var core: QueueCore?
  }

  let state: Locked<State>
  private let files: SegmentFiles

  /// The name of a codec that adopts that of the queue, which the first write records.
  private let adoptingName = Locked<String?>(nil)
  let operations = RunningOperations()

  init(
    _ opened: QueueRecovery.Opened, information: StoreInformation, policy: QueueCapacity.Policy,
    clock: any Clock<Duration>, time: QueueTime, onDeadLetter: (@Sendable (DeadLetterEvent) -> Void)?
  ) {
    self.information = information
    self.policy = policy
    self.time = time
    firstDeadLetterObserver = onDeadLetter.map(deadLetterObservers.add)
    folder = opened.log.folder
    files = opened.log.files
    timer = DeadlineTimer(clock: clock)
    state = Locked(State(core: QueueCore(opened)))
  }

  // MARK: The codec

  /// Records the name of a codec with the next write.
  func recordWithNextWrite(codecName: String) {
    adoptingName.withLock { $0 = codecName }
  }

  /// Passes the name of an adopting codec to the log, before calls that write.
  func passCodecName(to core: inout QueueCore) {
    if let name = adoptingName.withLock(\.self) { core.log.codecName = name }
  }

  // MARK: Calls

  /// Runs a closure on the queue's state, and returns when its changes are committed.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - weight: The kind of work that `body` does.
  ///   - needsRoom: A Boolean value that indicates whether `body` may need room, and so waits if there isn't one and
  ///     the policy is to wait. Defaults to `false`.
  ///   - ignoresCancellation: A Boolean value that indicates whether a call that writes runs in a cancelled task too,
  ///     as all other calls do. Defaults to `false`.
  ///   - body: A closure that throws ``QueueRefusal/noItems`` to run again when there are waiting items. It may run
  ///     several times; only the last time counts.
  /// - Throws: ``StoreError``; `CancellationError`; the error of `body`.
  func perform<Result: Sendable>(
    _ operation: StoreOperation, _ weight: QueueCall.Weight, needsRoom: Bool = false,
    ignoresCancellation: Bool = false, _ body: @escaping @Sendable (inout QueueCore) throws -> Result
  ) async throws -> Result {
    let writes = weight == .writes || weight == .blocks
    if writes { try information.checkWritable(for: operation) }
    let ignoresCancellation = ignoresCancellation || !writes
    let box = Locked<Result?>(nil)
    let call = QueueCall(
      operation, weight, at: time.steady(), needsRoom: needsRoom, waitsForRoom: needsRoom && policy == .wait
    ) { core in
      let result = try body(&core)
      box.withLock { $0 = result }
    }
    if !ignoresCancellation { try Task.checkCancellation() }
    submit(call)
    if let result = call.result {
      // The call was served in this task.
      try result.get()
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
    guard let result = box.withLock({ $0 }) else { throw information.closedError(for: operation) }
    return result
  }

  /// Finds items, and reads their payloads off the cooperative pool.
  ///
  /// Callers decode the payloads themselves, because reading takes turns and a slow codec would hold up all others.
  ///
  /// A segment is removed when its items are gone or were moved. They are then found again, and no segment is removed
  /// until they are read.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - found: The items, if they were already found. Defaults to `nil`.
  ///   - item: A closure that returns the item of a result of `find`.
  ///   - find: A closure that finds the items.
  /// - Returns: The results of `find`, each with its payload, `nil` if it is damaged, or with the error of reading it.
  /// - Throws: ``StoreError`` if reading fails for a reason that concerns no single item.
  func payloads<Found: Sendable>(
    _ operation: StoreOperation, of found: [Found]? = nil, _ item: @Sendable (Found) -> QueueItem,
    finding find: @escaping @Sendable (inout QueueCore) -> [Found]
  ) async throws -> [(found: Found, payload: Payload)] {
    let first = if let found { found } else { try await perform(operation, .looks) { find(&$0) } }
    if let payloads = try await readPayloads(operation, of: first.map(item)) { return Array(zip(first, payloads)) }
    return try await keepingSegments(operation, finding: find) { found in
      let payloads = try await readPayloads(operation, of: found.map(item), evenIfLost: true)
      return Array(zip(found, payloads ?? []))
    }
  }

  /// The payload of an item, `nil` if it is damaged, or the error of reading it.
  typealias Payload = Result<ArraySlice<UInt8>?, StoreError>

  /// Reads the payloads of items off the cooperative pool.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - items: The items.
  ///   - evenIfLost: A Boolean value that indicates whether a missing segment is an error of its items, because another
  ///     program has removed it. Defaults to `false`.
  /// - Returns: The payloads; `nil` if a segment is missing and `evenIfLost` is `false`.
  private func readPayloads(
    _ operation: StoreOperation, of items: [QueueItem], evenIfLost: Bool = false
  ) async throws(StoreError) -> [Payload]? {
    guard !items.isEmpty else { return [] }
    let (files, folder) = (files, folder)
    do throws(FileError) {
      let payloads = try await reader.run { () throws(FileError) in
        try files.readEach(items.map(\.place), evenIfLost: evenIfLost)
      }
      return zip(items, payloads).map { item, payload in
        payload.mapError { folder.unreadableError(of: item.key, during: operation, $0) }
      }
    } catch {
      if error.isMissing { return nil }
      throw StoreError(
        error, during: operation, store: folder.name, message: "the files of the queue could not be read")
    }
  }

  /// Runs a closure on the queue's state, and another one with its result, and removes no segment in between.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - find: A closure that only reads the state.
  ///   - body: A closure that reads files of the queue.
  /// - Returns: The result of `body`.
  /// - Throws: ``StoreError``; the error of `body`.
  func keepingSegments<Found: Sendable, Output>(
    _ operation: StoreOperation, finding find: @escaping @Sendable (inout QueueCore) -> Found,
    _ body: (Found) async throws -> Output
  ) async throws -> Output {
    // Closures on the state may run several times. With a number, that makes no difference.
    let pin = UInt64.random(in: .min ... .max)
    let found = try await perform(operation, .looks) { core in
      core.log.pins.insert(pin)
      return find(&core)
    }
    let result: Result<Output, any Error>
    do {
      result = .success(try await body(found))
    } catch {
      result = .failure(error)
    }
    // The segments that are unneeded by now are removed as part of this call.
    _ = try await perform(operation, .looks) { $0.log.pins.remove(pin) }
    return try result.get()
  }

  // MARK: Serving

  private func submit(_ call: QueueCall) {
    var core: QueueCore?
    let mustStart = state.withLock { state in
      let mustStart = state.calls.begin()
      if mustStart, canServeHere(call) { swap(&core, &state.core) } else { state.calls.append(call) }
      return mustStart
    }
    if core != nil { serveHere(call, &core) } else if mustStart { startCommitting() }
  }

  /// A Boolean value that indicates whether a call can be served without waiting for the disk, if frames can be
  /// appended.
  private func canServeHere(_ call: QueueCall) -> Bool {
    switch call.weight {
    case .looks: true
    case .writes: folder.durability == .buffered
    case .blocks, .alone: false
    }
  }

  private func serveHere(_ call: QueueCall, _ taken: inout QueueCore?) {
    guard var core = taken.take() else { return }
    if call.weight != .looks { passCodecName(to: &core) }
    // Checked here, after the core was taken: checking it under the lock would copy it.
    guard call.weight == .looks || core.isReady else {
      taken = consume core
      state.withLock { state in
        swap(&state.core, &taken)
        state.calls.putBack([call])
      }
      return startCommitting()
    }
    var (group, endings): ([QueueCall], [Ending]) = ([call], [])
    insertExpiryOfDeadLetters(&group, &core)
    settle(group, &core, &endings)
    followUp(&core)
    // Reclaiming space waits for the disk, so it is left to the engine's thread. The caller resumes afterward, so that
    // no work continues in the background after a call returns.
    let isReclaimingDue = isReclaimingDue(&core)
    taken = consume core
    let mustContinue = state.withLock { state in
      swap(&state.core, &taken)
      return state.calls.finish(hasWork: isReclaimingDue)
    }
    if isReclaimingDue { return startCommitting(endings) }
    for (call, result) in endings { call.end(result) }
    if mustContinue { startCommitting() }
  }

  /// Ensures that expired deadlines are processed soon, and that calls that wait for room are retried.
  private func wake() {
    let noOp = QueueCall(.receive, .looks, at: time.steady()) { _ in }
    let mustStart = state.withLock { state in
      state.calls.returnProducers()
      state.calls.append(noOp)
      return state.calls.begin()
    }
    if mustStart { startCommitting() }
  }

  /// Commits groups on the engine's thread.
  ///
  /// - Parameter served: Calls that were served and must be ended. Defaults to an empty list.
  private func startCommitting(_ served: [Ending] = []) {
    executor.start { self.commitGroups(served) }
  }

  private func commitGroups(_ served: [Ending]) {
    var endings = served
    var taken: QueueCore?
    state.withLock { swap(&taken, &$0.core) }
    while var core = taken.take() {
      var group = state.withLock { $0.calls.takeGroup() }
      insertExpiryOfDeadLetters(&group, &core)
      settle(group, &core, &endings)
      reclaim(&core)
      followUp(&core)
      for (call, result) in endings { call.end(result) }
      endings = []
      let isReclaimingDue = isReclaimingDue(&core)
      taken = consume core
      state.withLock { state in
        if !state.calls.finish(hasWork: isReclaimingDue) { swap(&taken, &state.core) }
      }
    }
  }

  /// Returns waiting receivers to the wait queue if items wait, or else sets the timer to the next deadline.
  private func followUp(_ core: inout QueueCore) {
    let waiting = core.leasableCount
    let hasReceivers = state.withLock { state in
      if waiting > 0 { state.calls.returnReceivers(waiting) }
      return state.calls.hasReceivers
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
    let waiting = state.withLock { $0.calls.close() }
    for call in waiting { call.end(.failure(information.closedError(for: call.operation))) }
    await operations.close()
    timer.cancel()
    let (folder, time) = (folder, time)
    try await perform(.close, .alone) { core in
      guard !core.isClosed else { return }
      try folder.reportingFileErrors(during: .close, message: "the queue could not be closed cleanly") {
        try core.close(time)
      }
    }
  }
}
