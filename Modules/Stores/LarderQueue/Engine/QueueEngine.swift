import Larder
import LarderFiles
import Synchronization

/// Serves the calls of a queue: one after another, those that come meanwhile together, with one commit for all of them.
///
/// A call that finds the engine idle is served in its own task if that need not wait for the disk. All others are served on
/// a thread of the engine. A call is over when what it has changed is as durable as the queue
/// promises; and where it has only looked, when what it has seen is. So nothing is seen that could still fail.
///
/// How a group of calls becomes one commit is in the extension.
final class QueueEngine: Sendable {
  let information: StoreInformation
  let folder: QueueFolder
  let time: QueueTime
  private let policy: QueueCapacity.Policy
  private let executor = DispatchQueueExecutor(label: "Larder.QueueStore")
  private let reader = DispatchQueueExecutor(label: "Larder.QueueStore.reading")
  private let alarm: QueueAlarm
  /// Is told of each item that becomes a dead letter.
  let onDeath: (@Sendable (QueueDeath) -> Void)?

  /// A call that is over, and how.
  typealias Ending = (call: QueueCall, result: Result<Void, any Error>)

  struct State: Sendable {
    /// Calls that are over, but whose callers are told only when space has been given back: nothing goes on behind
    /// their backs.
    var endings: [Ending] = []
    var line = QueueLine<QueueCall>()
    /// `nil` while a thread is busy with it.
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
  ///   - needsRoom: Whether it may take room, and waits where there is none, if that is the policy; defaults to `false`.
  ///   - ignoresCancellation: Whether it is done in a cancelled task too; defaults to `false`.
  ///   - body: Does it, and gives `nil` to be called again when there are items that wait. It may be called more than
  ///     once; then only the last time counts.
  /// - Throws: ``StoreError``; `CancellationError`; what `body` throws.
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
      // It was served here.
      try ending.get()
    } else if ignoresCancellation {
      try await call.wait()
    } else {
      try await withTaskCancellationHandler {
        try await call.wait()
      } onCancel: {
        call.cancel()
        // The next waiter for room may be served now.
        if call.waitsForRoom { wake() }
      }
    }
    guard let result = box.take() else { throw information.closedError(for: operation) }
    return result
  }

  /// Does a part of what an operator asks for, in turn with other calls.
  ///
  /// - Parameters:
  ///   - operation: What is asked for.
  ///   - weight: The kind of work `body` does; defaults to looking.
  ///   - body: Does it.
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
  ///   - operation: What is asked for.
  ///   - item: The item of what was found.
  ///   - find: Finds the items.
  /// - Returns: What was found, with its payloads, `nil` if one is damaged.
  /// - Throws: ``StoreError``, with the key of the item that the disk refuses to give.
  func payloads<Found: Sendable>(
    _ operation: StoreOperation, of item: @Sendable (Found) -> QueueItem,
    _ find: @escaping @Sendable (inout QueueCore) -> [Found]
  ) async throws -> [(found: Found, payload: ArraySlice<UInt8>?)] {
    try await readablePayloads(operation, of: item, find).map { ($0, try $1.get()) }
  }

  /// Finds items, and reads their payloads, as far as that goes; see ``payloads(_:of:_:)``.
  ///
  /// - Returns: What was found, with its payloads, or the error with which the disk refuses one.
  /// - Throws: ``StoreError`` where the reason has nothing to do with one item.
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

  /// Reads the payloads of items that were leased, and makes something of each, off the cooperative pool.
  ///
  /// - Parameters:
  ///   - leased: The items.
  ///   - body: Gets an item with its payload, `nil` if that is damaged, or with the error with which the disk refuses it.
  /// - Throws: `FileError` if no item can be read for reasons that have nothing to do with it.
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
        // Where a segment is gone, what was in it has been written elsewhere meanwhile.
        guard folder.hasLost(error) else { throw error }
        guard let moved = await located(leased) else { break }
        leased = moved
      }
    }
    return try await read(leased, evenIfLost: true)
  }

  /// Items that were leased, with the places where they are now; `nil` if the queue is closed.
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
      // The items are unreadable then, which is told.
      return nil
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
    guard call.weight == .looks || core.isReady else {
      taken = consume core
      state.withLock { state in
        swap(&state.core, &taken)
        state.line.giveBack([call])
      }
      return startCommitting()
    }
    var endings: [Ending] = []
    expireDeadLetters(before: [call], &core)
    settle([call], &core, &endings)
    let needsReclaiming = isReclaimingDue(&core)
    followUp(&core)
    taken = consume core
    // What must wait for the disk is done elsewhere, and so is whatever has come meanwhile.
    let nothing = nothingToDo
    let mustGoOn = state.withLock { state in
      swap(&state.core, &taken)
      if needsReclaiming {
        state.endings += endings
        endings = []
      }
      // Waiters for room are retried there too.
      if needsReclaiming || state.line.hasProducers { _ = state.line.enter(nothing) }
      return state.line.finish()
    }
    for (call, result) in endings { call.end(result) }
    if mustGoOn { startCommitting() }
  }

  /// A no-op call that processes expired deadlines.
  private var nothingToDo: QueueCall { QueueCall(.receive, .looks, at: time.steady()) { _ in .done } }

  /// Sees to it that there is another group behind the one that goes on.
  func goOn() {
    let nothing = nothingToDo
    _ = state.withLock { $0.line.enter(nothing) }
  }

  /// Sees to it that there is a group soon.
  private func wake() {
    let nothing = nothingToDo
    if state.withLock({ $0.line.enter(nothing) }) { startCommitting() }
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
      expireDeadLetters(before: group, &core)
      settle(group, &core, &endings)
      retryProducers(&core, &endings)
      reclaim(&core)
      if isReclaimingDue(&core) { goOn() }
      followUp(&core)
      for (call, result) in endings { call.end(result) }
      taken = consume core
    }
  }

  /// Returns waiting receivers to the line if items wait, and sets the alarm for the next deadline otherwise.
  private func followUp(_ core: inout QueueCore) {
    let waiting = core.leasableCount
    let hasReceivers = state.withLock { state in
      if waiting > 0 { state.line.returnReceivers(waiting) }
      return state.line.hasReceivers
    }
    // What gives space back on a full disk has no deadline.
    let retry = core.ledger.counts.waiting > waiting ? time.steady().addingSaturating(SpaceReserve.pause) : nil
    if hasReceivers, let deadline = [core.ledger.nextDeadline, retry].compactMap(\.self).min() {
      alarm.set(deadline, now: time.steady()) { [weak self] in self?.wake() }
    } else {
      alarm.cancel()
    }
  }

  // MARK: Space

  private func isReclaimingDue(_ core: inout QueueCore) -> Bool {
    guard !core.isClosed, core.log.needsReclaiming(&core.ledger) else { return false }
    // To remove files takes no room, so it does not wait for what has failed.
    return core.log.hasRemovableLeftovers || core.log.neededSize >= core.reclaimingSize
  }

  /// Does a piece of what gives space back: others are waiting.
  private func reclaim(_ core: inout QueueCore) {
    guard isReclaimingDue(&core) else { return }
    do {
      let isOfUse = try core.log.reclaim(&core.ledger, clockOffset: time.offset)
      core.reclaimingSize = isOfUse ? 0 : core.log.neededSize + core.log.segmentLimit / 4
    } catch {
      // Nothing is lost but space. Not at once again: what failed will probably go on failing.
      core.reclaimingSize = core.log.neededSize + core.log.segmentLimit / 4
    }
  }

  // MARK: Closing

  /// Ends the calls that wait for something, waits for the others, and closes the files.
  func close() async throws {
    let waiting = state.withLock { $0.line.close() }
    for call in waiting { call.end(.failure(information.closedError(for: call.operation))) }
    await running.close()
    alarm.cancel()
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
