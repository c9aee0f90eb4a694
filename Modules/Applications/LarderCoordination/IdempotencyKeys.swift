public import Foundation
public import Larder

/// The treatment of a request that was interrupted by a crash or a cancellation, so that it is unknown whether it had its
/// effect.
///
/// ```swift
/// let emails = try IdempotencyKeys(
///   bytes, prefix: "emails/", codec: .json(Receipt.self), interruptions: .runAgain)  // sending twice does no harm
/// ```
public enum InterruptionPolicy: Sendable, Hashable {
  /// The next request with the key runs again. The effect happens at least once.
  case runAgain
  /// The next request with the key is refused with `interrupted`. The effect happens at most once.
  case refuse
}

/// Requests that have their effect once, however often they are repeated with the same key.
///
/// ```swift
/// let requests = try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Receipt.self))
///
/// let receipt = try await requests.perform(StoreKey(key), fingerprint: body) {
///   try await bank.charge(order)
/// }
/// ```
///
/// The outcome of the first request is stored. A repetition gets it without running. A repetition at the same time waits for
/// the first request. Another request with the same key is refused.
///
/// ## Crashes
///
/// If a process crashes while its closure runs, a repetition notices that after a lease. It is unknown then whether the
/// effect has happened, so that ``interruptions`` decides. An effect in the same store needs no such decision: in a
/// transaction, the effect and the record are one commit.
///
/// ```swift
/// let receipt = try await bytes.transaction { tx in
///   .commit(
///     try await tx.perform(StoreKey(key), fingerprint: body, with: requests) {
///       try await tx.update("balance", in: accounts) { $0 = ($0 ?? 0) - 10 }
///       return Receipt(amount: 10)
///     })
/// }
/// ```
public final class IdempotencyKeys<Outcome: Sendable>: Sendable {
  /// The store of the records.
  public let base: AnyDataStore<[UInt8]>

  /// The prefix of all keys of the records in the store.
  public let prefix: StoreKey

  /// The treatment of a request that was interrupted by a crash.
  public let interruptions: InterruptionPolicy

  /// The time that an outcome is kept, and after which its key can be used again.
  public let retention: Duration

  private let coder: ValueCoder<Outcome>
  private let locks: StoreLock
  private let now: @Sendable () -> Date

  /// Creates the keys of a prefix, without reading anything.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - prefix: The prefix of the keys of all records. No other entry may have a key that begins with it.
  ///   - codec: The codec of the outcomes.
  ///   - interruptions: The treatment of a request that was interrupted by a crash. Defaults to
  ///     ``InterruptionPolicy/refuse``.
  ///   - retention: The time that an outcome is kept, by the wall clock. Defaults to one day.
  ///   - configuration: The durations of the lock that a running request holds. Defaults to a lease of 10 seconds.
  ///   - clock: The steady clock of leases and waits. Defaults to a `ContinuousClock`.
  ///   - now: A closure that returns the wall-clock time. Defaults to the system time.
  /// - Throws: `StoreError` with `invalidArgument` if the retention is not greater than zero; as
  ///   ``StoreLock/init(_:prefix:configuration:clock:)``.
  public init(
    _ base: some DataStore<[UInt8]>, prefix: StoreKey, codec: some Codec<Outcome>,
    interruptions: InterruptionPolicy = .refuse, retention: Duration = .seconds(86_400),
    configuration: StoreLockConfiguration = StoreLockConfiguration(), clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date.now }
  ) throws {
    self.base = AnyDataStore(base)
    self.prefix = prefix
    self.interruptions = interruptions
    self.retention = retention
    self.now = now
    locks = try StoreLock(base, prefix: prefix.appending("l"), configuration: configuration, clock: clock)
    let information = base.information
    coder = ValueCoder(
      codec: codec, store: information.name,
      maximumSize: information.maximumValueSize.map { max(0, $0 - IdempotencyRecord.overhead) } ?? .max)
    guard retention > .zero else {
      throw StoreError(
        .invalidArgument, during: .open, store: information.name,
        message: "the retention of idempotency keys must be greater than zero, not \(retention)")
    }
  }

  /// Runs a request, or returns the stored outcome of an earlier one with the same key.
  ///
  /// If the closure throws, the request counts as one that never happened, and the next one with the key runs. Return a
  /// failure that repetitions are to get as an outcome. If the closure is cancelled, or the lock of the request is lost, it
  /// is unknown whether the effect has happened, so that ``interruptions`` decides as after a crash.
  ///
  /// If an outcome cannot be stored, that is repeated for a lease if the error is retryable. An error of the codec or of the
  /// store that is thrown then means that the effect has happened, and ``interruptions`` decides about a repetition.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - fingerprint: The bytes that make up the request, such as its method, path and body.
  ///   - waitLimit: The time that the call waits for a running request with the key. Defaults to `nil`, for no limit.
  ///   - isolation: The actor that the closure runs on. Defaults to your actor.
  ///   - body: A closure that has the effect, and returns its outcome.
  /// - Returns: The outcome.
  /// - Throws: The error of `body`; `StoreError` with `otherRequest` if the key belongs to a request with another
  ///   fingerprint; `stillRunning` if the limit is over, with nothing run; `interrupted` if an earlier request was interrupted, with ``InterruptionPolicy/refuse``;
  ///   `lockLost` if this process was suspended for longer than the lease, so that the outcome could not be stored; the
  ///   errors of the codec and of the store.
  public func perform(
    _ key: StoreKey, fingerprint: some Sequence<UInt8>, waitLimit: Duration? = nil,
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Outcome
  ) async throws -> Outcome {
    let (digest, recordKey) = (Self.digest(of: fingerprint), try recordKey(key, for: .idempotency))
    // A repetition only reads. A copy could still have the outcome of a key that was removed.
    if base.information.readsMayBeCopies == false,
      let outcome = try outcome(step(try await base.value(forKey: recordKey), recordKey, digest), recordKey)
    {
      return outcome
    }
    let seen = Locked(IdempotencyStep.run)
    let held = try await acquire(
      key, atMost: waitLimit,
      with: LockCompanion(key: recordKey) { [self] slot in
        let step = try step(slot, recordKey, digest)
        seen.withLock { $0 = step }
        guard step == .run || step == .started && interruptions == .runAgain else { return false }
        slot = record(digest, outcome: nil)
        return true
      } undo: { slot in
        // The record of an earlier request that was interrupted stays.
        if seen.withLock({ $0 }) == .run { slot = nil }
      })
    guard let held else {
      let step = seen.withLock { $0 }
      if let outcome = try outcome(step, recordKey) { return outcome }
      throw StoreError(
        .interrupted, during: .idempotency, store: base.information.name, key: key,
        message:
          "an earlier request with the key was interrupted, so it is unknown whether it had its effect; find out, "
          + "and remove the key or use another one")
    }
    let outcome = try await held.working(
      isolation: isolation,
      onFailure: LockCompanion(key: recordKey) { slot in
        slot = nil
        return true
      }
    ) { _ in try await body() }
    let bytes: [UInt8]
    do {
      bytes = try coder.bytes(of: outcome, forKey: recordKey, during: .idempotency)
    } catch {
      // The effect has happened, so the record stays.
      await held.releaseOrExpire()
      throw error
    }
    let (isStored, isRepetition) = try await held.release(
      repeating: LockCompanion(key: recordKey) { [self] slot in
        slot = record(digest, outcome: bytes)
        return true
      })
    if isStored { return outcome }
    // An earlier attempt may have stored the outcome and reported an error.
    if isRepetition, try step(try await base.value(forKey: recordKey), recordKey, digest) == .finished(bytes) {
      return outcome
    }
    throw StoreError.lockLost(during: .idempotency, of: base.information)
  }

  /// Removes the record of a key, so that the next request with it runs.
  ///
  /// A request that is running cannot store its outcome any more.
  ///
  /// - Parameter key: The key.
  /// - Throws: `StoreError` with `invalidKey`; the errors of the store.
  public func remove(_ key: StoreKey) async throws {
    let recordKey = try recordKey(key, for: .idempotency)
    try await base.apply(ChangeBatch([.remove(recordKey)] + lockKeys(key).map { .remove($0) }))
  }

  /// Removes records whose retention is over.
  ///
  /// The record of a request that was interrupted is removed by the second of two calls of the same object that are a lease
  /// apart, because it may still run.
  ///
  /// ```swift
  /// let count = try await requests.purge()
  /// print("\(count) records of old requests were removed")
  /// ```
  ///
  /// - Returns: The number of removed records.
  /// - Throws: `StoreError` with `corrupted` or `versionMismatch` if a record cannot be read, after all others; the errors of
  ///   the store.
  @discardableResult
  public func purge() async throws -> Int {
    let records = KeyPrefix(prefix.appending("o"))
    let partSize = min(64, (base.information.maximumChangeCount ?? .max) / 3)
    return try await base.removing(in: records.storedRange(.all), partSize: partSize) { [self] keys in
      let names = keys.compactMap(records.key(ofStored:))
      let all = keys + names.flatMap(lockKeys)
      return try await base.update(all) { [self] slots in
        let now = now().microsecondsSince1970
        let latest = now.addingSaturating((retention + WallClock.tolerance).wholeMicroseconds)
        var (removed, failure): (Int, (any Error)?) = (0, nil)
        for index in keys.indices {
          do {
            guard let record = try record(slots[index], keys[index]) else { continue }
            if !record.isLive(at: now) {
              // A request can run for longer than the retention.
              let lock = (0...1).map { slots[keys.count + 2 * index + $0] }
              guard try record.outcome != nil || locks.isAbandoned(names[index], lock) else { continue }
              slots[index] = nil
              for lock in 0...1 { slots[keys.count + 2 * index + lock] = nil }
              removed += 1
            } else if record.deadline > latest {
              // The clock was ahead when the deadline was stored.
              slots[index] = self.record(record.fingerprint, outcome: record.outcome)
            }
          } catch {
            failure = failure ?? error
          }
        }
        return (removed, failure)
      }
    }
  }

  // MARK: Parts

  /// Waits for the lock of a request.
  ///
  /// - Throws: `StoreError` with `stillRunning` if the limit is over; the errors of ``StoreLock/acquire(_:)``.
  private func acquire(
    _ key: StoreKey, atMost limit: Duration?, with companion: LockCompanion
  ) async throws -> HeldLock? {
    guard let limit else { return try await locks.acquire(key, with: companion) }
    let isOver = Locked(false)
    let acquiring = Task { [locks] in try await locks.acquire(key, with: companion) }
    let timer = Task { [clock = locks.clock] in
      try await clock.sleep(for: limit)
      isOver.withLock { $0 = true }
      // A lock that is granted in this moment is returned nevertheless.
      acquiring.cancel()
    }
    defer { timer.cancel() }
    do {
      return try await withTaskCancellationHandler {
        try await acquiring.value
      } onCancel: {
        acquiring.cancel()
      }
    } catch let error as CancellationError {
      guard isOver.withLock({ $0 }), !Task.isCancelled else { throw error }
      throw StoreError(
        .stillRunning, during: .idempotency, store: base.information.name, key: key,
        message: "a request with the key has not ended within \(limit); repeat this one later", isRetryable: true)
    }
  }

  /// Performs a request in a transaction; see `StoreTransaction.perform(_:fingerprint:with:_:)`.
  fileprivate func perform<Base: DataStore>(
    _ key: StoreKey, fingerprint: some Sequence<UInt8>, in transaction: StoreTransaction<Base>,
    isolation: isolated (any Actor)?, _ body: () async throws -> Outcome
  ) async throws -> Outcome where Base.Value == [UInt8] {
    let (digest, recordKey) = (Self.digest(of: fingerprint), try recordKey(key, for: .transaction))
    let stored = try await transaction.value(forKey: recordKey)
    let step = try step(stored, recordKey, digest)
    if let outcome = try outcome(step, recordKey) { return outcome }
    var isRunning = step != .run
    if let record = try record(stored, recordKey), record.outcome == nil {
      // A request can run for longer than the retention. The read of its term lets the commit notice a new one.
      let keys = LockKeys(name: key, prefix: locks.prefix)
      let term = try await transaction.value(forKey: keys.term)
      isRunning = try isRunning || keys.state(term, nil, of: base.information).term?.isHeld == true
    }
    guard !isRunning else {
      throw StoreError(
        .interrupted, during: .transaction, store: base.information.name, key: key,
        message: "a request with the key runs outside of a transaction, or was interrupted")
    }
    let outcome = try await body()
    let bytes = try coder.bytes(of: outcome, forKey: recordKey, during: .transaction)
    try transaction.setValue(record(digest, outcome: bytes), forKey: recordKey)
    return outcome
  }

  private static func digest(of fingerprint: some Sequence<UInt8>) -> [UInt8] {
    Array(fingerprint).withUnsafeBytes { KeyDigest.digest(of: $0) }
  }

  private func recordKey(_ key: StoreKey, for operation: StoreOperation) throws -> StoreKey {
    let keys = lockKeys(key)
    try base.information.check(keys, for: operation)
    return prefix.appending("o").appending(key)
  }

  private func lockKeys(_ key: StoreKey) -> [StoreKey] {
    LockKeys(name: key, prefix: locks.prefix).all
  }

  private func record(_ fingerprint: [UInt8], outcome: [UInt8]?) -> [UInt8] {
    let deadline = now().microsecondsSince1970.addingSaturating(retention.wholeMicroseconds)
    return IdempotencyRecord(fingerprint: fingerprint, deadline: deadline, outcome: outcome).record
  }

  private func record(_ bytes: [UInt8]?, _ key: StoreKey) throws -> IdempotencyRecord? {
    guard let bytes else { return nil }
    return try base.information.reading(key, for: .idempotency) { () throws(RecordProblem) in
      try IdempotencyRecord(record: bytes)
    }
  }

  private func step(_ bytes: [UInt8]?, _ key: StoreKey, _ digest: [UInt8]) throws -> IdempotencyStep {
    IdempotencyStep(try record(bytes, key), fingerprint: digest, now: now().microsecondsSince1970)
  }

  /// Returns the outcome of an earlier request, or `nil` if there isn't one yet.
  private func outcome(_ step: IdempotencyStep, _ key: StoreKey) throws -> Outcome? {
    switch step {
    case .finished(let bytes): return try coder.value(of: bytes, forKey: key, during: .idempotency)
    case .run, .started: return nil
    case .otherRequest:
      throw StoreError(
        .otherRequest, during: .idempotency, store: base.information.name,
        message: "the idempotency key belongs to another request; use a new key for each request")
    }
  }
}

extension StoreTransaction {
  /// Performs a request with an idempotency key in the transaction, so that its effect and its record are one commit.
  ///
  /// The closure must have no effects outside of the transaction, because it may run again. Nothing of it is committed
  /// twice, whatever crashes.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - fingerprint: The bytes that make up the request.
  ///   - keys: The idempotency keys, in the store of the transaction.
  ///   - isolation: The actor that the closure runs on. Defaults to your actor.
  ///   - body: A closure that writes through the transaction, and returns the outcome.
  /// - Returns: The outcome, or that of an earlier request with the same key.
  /// - Throws: The error of `body`; `StoreError` with `otherRequest`, or with `interrupted` if a request with the key runs
  ///   outside of a transaction; the errors of the codec and of a read.
  public func perform<Outcome>(
    _ key: StoreKey, fingerprint: some Sequence<UInt8>, with keys: IdempotencyKeys<Outcome>,
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Outcome
  ) async throws -> Outcome {
    try await keys.perform(key, fingerprint: fingerprint, in: self, isolation: isolation, body)
  }
}

extension StoreError.Code {
  /// The idempotency key belongs to a request with another fingerprint.
  public static let otherRequest = StoreError.Code(rawValue: "otherRequest")
  /// A request with the idempotency key has not ended within the time for which a repetition waits for it.
  public static let stillRunning = StoreError.Code(rawValue: "stillRunning")
  /// An earlier request with the key was interrupted, so that it is unknown whether it had its effect.
  public static let interrupted = StoreError.Code(rawValue: "interrupted")
}

extension StoreOperation {
  /// Performing a request with ``IdempotencyKeys``.
  public static let idempotency = StoreOperation(rawValue: "idempotency")
}
