public import Larder

/// Locks by name in a store of bytes, whose holders are checked in the commits of their writes.
///
/// ```swift
/// let locks = try StoreLock(bytes, prefix: "locks/")
///
/// try await locks.withLock("import") { token in
///   let rows = try await download()
///   try await bytes.transaction { tx in
///     try await tx.require(token)
///     for row in rows { try await tx.setValue(row, forKey: row.key, in: table) }
///     return .commit(())
///   }
/// }
/// ```
///
/// A lock alone cannot exclude other writers for certain, because its holder can be suspended for longer than its lease
/// without noticing. A write with `tx.require(token)` is committed only while the stored term names its token, so that of
/// two callers that believe to hold a lock, only the later one can write. <doc:Coordination> says what that promises, and
/// what it costs.
///
/// ## Leases
///
/// A holder renews its lock in each third of the lease. A waiter takes the lock of a dead holder after it has itself seen
/// the heartbeat unchanged for the whole lease, by its own steady clock. Wall clocks are not read, and clocks of hosts are
/// not compared. An object remembers what it has seen, so that attempts with ``tryAcquire(_:)`` and short waits replace a
/// dead holder, too, after one lease from the first of them.
///
/// ## Order
///
/// The callers of one object get a lock in the order of their arrival, so share one object in a process. Up to 32 objects
/// that wait for a lock get it in the order of their arrival, too. A waiter that is dead when its turn comes costs the
/// others three times ``StoreLockConfiguration/pollInterval``.
///
/// ## Names
///
/// The number of the latest term outlives the lock, so each name that was ever locked keeps an entry of 30 bytes.
public final class StoreLock: Sendable {
  /// The store of the locks.
  public let base: AnyDataStore<[UInt8]>

  /// The prefix of all keys of the locks in the store.
  public let prefix: StoreKey

  /// The durations.
  public let configuration: StoreLockConfiguration

  /// The greatest number of names of which an object remembers what it has seen.
  ///
  /// If there are more, it begins again.
  private static let maximumObservationCount = 1_000

  let clock: any Clock<Duration>
  let elapsed: ElapsedTime
  private let callers = CallerQueues<StoreKey>()
  private let observations = Locked<[StoreKey: LockObservation]>([:])

  /// Creates the locks of a prefix, without reading anything.
  ///
  /// - Parameters:
  ///   - base: The store of bytes. Writes that a lock protects must be in the same one.
  ///   - prefix: The prefix of the keys of all locks. No other entry may have a key that begins with it.
  ///   - configuration: The durations. They should be the same in all programs. Defaults to a lease of 10 seconds.
  ///   - clock: The clock of leases and waits. It must be steady, and also run while the machine sleeps. Defaults to a
  ///     `ContinuousClock`.
  /// - Throws: `StoreError` with `invalidArgument` if the configuration is invalid; `unsupported` if the store may lose
  ///   entries, or has too small values; `notPermitted` if it is open for reading only.
  public init(
    _ base: some DataStore<[UInt8]>, prefix: StoreKey, configuration: StoreLockConfiguration = StoreLockConfiguration(),
    clock: any Clock<Duration> = ContinuousClock()
  ) throws {
    self.base = AnyDataStore(base)
    self.prefix = prefix
    self.configuration = configuration
    self.clock = clock
    elapsed = ElapsedTime(by: clock)
    let information = base.information
    try information.checkWritable(for: .lock)
    try information.checkKeepsEntries(for: "a lock")
    if let problem = configuration.problem {
      throw StoreError(.invalidArgument, during: .open, store: information.name, message: problem)
    }
    if let limit = information.maximumValueSize, limit < LockHeartbeat.maximumSize {
      throw StoreError(
        .unsupported, during: .open, store: information.name,
        message: "a record of a lock has up to \(LockHeartbeat.maximumSize) bytes, and values of the store \(limit)")
    }
  }

  // MARK: Locking

  /// Waits for a lock, runs a closure, and releases the lock.
  ///
  /// The lock is renewed while the closure runs. If it is lost, the closure is cancelled. If the release fails, the lock
  /// ends with its lease.
  ///
  /// - Parameters:
  ///   - name: The name of the lock.
  ///   - isolation: The actor that the closure runs on. Defaults to your actor.
  ///   - body: The closure. It receives the token that its writes require.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of ``acquire(_:)``; the error of `body`; `StoreError` with `lockLost` if `body` throws after the
  ///   lock was lost, with the error of `body` as the underlying one.
  public func withLock<Result>(
    _ name: StoreKey, isolation: isolated (any Actor)? = #isolation, _ body: (FencingToken) async throws -> Result
  ) async throws -> Result {
    try await acquire(name).run(isolation: isolation, body)
  }

  /// Waits for a lock.
  ///
  /// ```swift
  /// let lock = try await locks.acquire("import")
  /// try await lock.run { token in try await importRows(requiring: token) }
  /// ```
  ///
  /// - Parameter name: The name of the lock.
  /// - Returns: The lock. It must be released after the work.
  /// - Throws: `StoreError` with `invalidKey` if the name is too long; `corrupted` or `versionMismatch` if the state cannot
  ///   be read; the errors of the store, of which retryable ones are thrown after a lease without an answer. After an error
  ///   whose outcome is unknown, the lock may be held for a lease. `CancellationError`.
  public func acquire(_ name: StoreKey) async throws -> HeldLock {
    guard let held = try await acquire(name, with: nil) else { throw CancellationError() }
    return held
  }

  /// Returns a lock if it is free or its holder is dead, or `nil` if it is held or waited for.
  ///
  /// A holder is dead if the object has seen its heartbeat unchanged for a lease, in this call and earlier ones.
  ///
  /// ```swift
  /// guard let lock = try await locks.tryAcquire("import") else { throw ImportIsRunning() }
  /// try await lock.run { token in try await importRows(requiring: token) }
  /// ```
  ///
  /// - Parameter name: The name of the lock.
  /// - Throws: As ``acquire(_:)``, and retryable errors immediately.
  public func tryAcquire(_ name: StoreKey) async throws -> HeldLock? {
    let keys = try keys(of: name)
    guard callers.tryEnter(name) else { return nil }
    var held: HeldLock?
    defer { if held == nil { callers.leave(name) } }
    let started = elapsed.nanoseconds
    let before = waiter(for: name)
    let (after, answer) = try await change(keys, with: nil) { [elapsed] state, _ in
      var waiter = before
      let answer = waiter.take(&state, now: elapsed.nanoseconds)
      return (waiter, answer)
    }
    remember(after, name, hasTaken: answer.term != nil)
    if let term = answer.term { held = HeldLock(keys.token(of: term), of: self, since: started) }
    return held
  }

  /// Updates entries of the store, only if a lock is still held at the commit.
  ///
  /// ```swift
  /// try await locks.update(["balance"], requiring: token) { slots in slots[0] = newBalance }
  /// ```
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - token: The token of the lock.
  ///   - body: A closure as that of `update` of a `DataStore`.
  /// - Returns: The result of `body`.
  /// - Throws: `StoreError` with `lockLost` if the lock was released, lost or removed, with nothing changed; the errors of
  ///   `update`.
  @discardableResult
  public func update<Result: Sendable>(
    _ keys: [StoreKey], requiring token: FencingToken,
    _ body: @escaping @Sendable (inout UpdateSlots<[UInt8]>) throws -> Result
  ) async throws -> Result {
    let information = base.information
    return try await base.update([token.key] + keys) { slots in
      try token.check(slots[0], during: .update, of: information)
      var others = UpdateSlots(stored: slots.dropFirst())
      let result = try body(&others)
      for index in others.assignedIndices { slots[index + 1] = others[index] }
      return result
    }
  }

  // MARK: Waiting

  /// Waits for a lock, and changes another entry in the commit that takes it.
  ///
  /// - Returns: The lock, or `nil` if the companion has declined it.
  func acquire(_ name: StoreKey, with companion: LockCompanion?) async throws -> HeldLock? {
    let keys = try keys(of: name)
    try await callers.enter(name)
    var held: HeldLock?
    defer { if held == nil { callers.leave(name) } }
    held = try await wait(for: keys, with: companion)
    return held
  }

  /// The caller has had its turn, because it has released the lock or lost it.
  func leave(_ name: StoreKey) {
    callers.leave(name)
  }

  private func wait(for keys: LockKeys, with companion: LockCompanion?) async throws -> HeldLock? {
    var waiter = waiter(for: keys.name)
    var waits: (queue: ConsumerWaits, observation: StoreObservation?)?
    // The time of the first of the latest attempts that have all failed.
    var failingSince: Int64?
    do {
      while true {
        // Before the look, so that a release that follows it is noticed.
        let number = waits?.queue.enter()
        let started = elapsed.nanoseconds
        let step: Int64
        do {
          let attempt = try await attempt(&waiter, keys, isFirst: waits == nil, with: companion)
          failingSince = nil
          switch attempt {
          case .granted(let term):
            remember(waiter, keys.name, hasTaken: true)
            return HeldLock(keys.token(of: term), of: self, since: started)
          case .declined:
            remember(waiter, keys.name, hasTaken: true)
            return nil
          case .wait(let time):
            remember(waiter, keys.name, hasTaken: false)
            step = time
          }
        } catch let error as StoreError
          where error.isRetryable && started - (failingSince ?? started) < waiter.lease
        {
          failingSince = failingSince ?? started
          step = waiter.lease / 10
        } catch {
          if let number { waits?.queue.leave(number) }
          throw error
        }
        if let waits, let number {
          try await waits.queue.wait(number, atMost: pause(step), clock: clock)
        } else {
          // A lock that is free costs no observation.
          let queue = ConsumerWaits()
          waits = (queue, base.observation?.observe(.only(keys.term)) { _ in queue.signal() })
        }
      }
    } catch {
      await withdraw(waiter.id, keys, with: companion)
      throw error
    }
  }

  /// Returns a caller that knows what the object has seen of a lock.
  private func waiter(for name: StoreKey) -> LockWaiter {
    LockWaiter(
      id: .random(in: 1 ... .max), lease: configuration.lease.wholeNanoseconds,
      turn: configuration.turn.wholeNanoseconds,
      observation: observations.withLock { $0[name] } ?? LockObservation())
  }

  /// Remembers what a caller has seen of a lock, for the next one.
  private func remember(_ waiter: LockWaiter, _ name: StoreKey, hasTaken: Bool) {
    observations.withLock { observations in
      if observations.count >= Self.maximumObservationCount, observations[name] == nil { observations = [:] }
      observations[name] = hasTaken ? nil : waiter.observation
    }
  }

  /// Returns whether a lock is not waited for, and free or held by a dead holder.
  ///
  /// - Parameters:
  ///   - name: The name of the lock.
  ///   - records: The records of the term and the heartbeat, which were just read.
  func isAbandoned(_ name: StoreKey, _ records: [[UInt8]?]) throws -> Bool {
    let keys = LockKeys(name: name, prefix: prefix)
    let state = try keys.state(records[0], records[1], of: base.information)
    var waiter = waiter(for: name)
    let isAbandoned = waiter.wouldTake(state, now: elapsed.nanoseconds)
    remember(waiter, name, hasTaken: isAbandoned)
    return isAbandoned
  }

  /// Returns the time until the next look, which is earlier than the next step if not all commits are reported.
  private func pause(_ step: Int64) -> Duration {
    let lease = configuration.lease / 3
    let reportsAll = base.observation != nil && base.information.reportsAllCommits
    return min(.nanoseconds(step), reportsAll ? lease : min(lease, configuration.pollInterval))
  }

  private enum Attempt: Sendable {
    case granted(LockTerm)
    case declined
    case wait(Int64)
  }

  private func attempt(
    _ waiter: inout LockWaiter, _ keys: LockKeys, isFirst: Bool, with companion: LockCompanion?
  ) async throws -> Attempt {
    let information = base.information
    // Reads that may be copies would show an old heartbeat, which an update would find changed each time.
    if !isFirst, information.readsMayBeCopies == false {
      let values = try await base.values(forKeys: keys.all)
      let state = try keys.state(values[0], values[1], of: information)
      if case .wait(let time) = waiter.look(at: state, now: elapsed.nanoseconds) { return .wait(time) }
    }
    let before = waiter
    let (after, answer) = try await change(keys, with: companion) { [elapsed] state, slot in
      var waiter = before
      let stored = state
      let isHeld = state.isHeld(by: waiter.id)
      var answer: Attempt
      switch waiter.change(&state, now: elapsed.nanoseconds) {
      case .wait(let time): answer = .wait(time)
      case .granted(let term):
        answer = .granted(term)
        if !isHeld, let companion, try !companion.decide(&slot) {
          state = stored
          state.decline(waiter.id)
          answer = .declined
        }
      }
      return (waiter, answer)
    }
    waiter = after
    return answer
  }

  /// Gives up the place in the order of the waiters, and a term that was granted by a commit whose outcome is unknown.
  ///
  /// It does so whatever becomes of the task.
  private func withdraw(_ id: UInt64, _ keys: LockKeys, with companion: LockCompanion?) async {
    do {
      try await Task { [self] in
        try await change(keys, with: companion) { state, slot in
          let isHeld = state.isHeld(by: id)
          state.withdraw(id)
          guard isHeld, let companion else { return }
          companion.undo(&slot)
          state.term = nil
        }
      }.value
    } catch {
      // The others wait for a turn that is not taken. The error of the wait is more useful than this one.
    }
  }

  // MARK: Holding

  /// Renews a lock.
  ///
  /// - Returns: Whether the lock is still held.
  func renew(_ token: FencingToken) async throws -> Bool {
    try await change(try keys(of: token.name), with: nil) { state, _ in state.renew(token.term) }
  }

  /// Releases a lock, whatever becomes of the task.
  ///
  /// - Parameters:
  ///   - token: The token of the lock.
  ///   - companion: Another entry that changes in the same commit, if the lock is still held; the term is then removed.
  /// - Returns: Whether the lock was still held.
  func release(_ token: FencingToken, with companion: LockCompanion? = nil) async throws -> Bool {
    let keys = try keys(of: token.name)
    return try await Task { [self] in
      try await change(keys, with: companion) { state, slot in
        guard state.release(token.term) else { return false }
        if let companion, try companion.decide(&slot) { state.term = nil }
        return true
      }
    }.value
  }

  /// Changes the state of a lock in one update, and writes nothing if it stays the same.
  private func change<Result: Sendable>(
    _ keys: LockKeys, with companion: LockCompanion?,
    _ body: @escaping @Sendable (inout LockState, inout [UInt8]?) throws -> Result
  ) async throws -> Result {
    let information = base.information
    return try await base.update(deciding: keys.all + (companion.map { [$0.key] } ?? [])) { slots in
      let before = try keys.state(slots[0], slots[1], of: information)
      var (state, other) = (before, companion == nil ? nil : slots[2])
      let result = try body(&state, &other)
      if state.term != before.term { slots[0] = state.term?.record }
      let heartbeat = state.heartbeatRecord
      if heartbeat != slots[1] { slots[1] = heartbeat }
      if companion != nil, other != slots[2] { slots[2] = other }
      return slots.assignedIndices.isEmpty ? .discard(result) : .commit(result)
    }
  }

  private func keys(of name: StoreKey) throws -> LockKeys {
    let keys = LockKeys(name: name, prefix: prefix)
    try base.information.check(keys.all, for: .lock)
    return keys
  }
}

/// An entry that changes in the commit that takes or releases a lock.
struct LockCompanion: Sendable {
  let key: StoreKey

  /// Changes the entry, and returns whether the lock is to be taken, or its term to be removed.
  let decide: @Sendable (inout [UInt8]?) throws -> Bool

  /// Takes back the change of a commit that took the lock for a caller that does not get it.
  var undo: @Sendable (inout [UInt8]?) -> Void = { _ in }
}

/// The keys of a lock's records.
struct LockKeys: Sendable {
  let name: StoreKey
  let term: StoreKey
  let heartbeat: StoreKey

  init(name: StoreKey, prefix: StoreKey) {
    self.name = name
    term = prefix.appending("t").appending(name)
    heartbeat = prefix.appending("h").appending(name)
  }

  var all: [StoreKey] { [term, heartbeat] }

  func token(of term: LockTerm) -> FencingToken {
    FencingToken(name: name, key: self.term, term: term)
  }

  func state(_ term: [UInt8]?, _ heartbeat: [UInt8]?, of information: StoreInformation) throws -> LockState {
    try information.reading(self.term, for: .lock) { () throws(RecordProblem) in
      try LockState(term: term, heartbeat: heartbeat)
    }
  }
}
