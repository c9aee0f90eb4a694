/// Limits across all programs that share a store: at most so many permits at the same time, and at most so many starts
/// in a time.
///
/// ```swift
/// let limiter = try StoreLimiter(
///   bytes, key: "limits/mail",
///   configuration: LimiterConfiguration(concurrency: 5, rate: RateLimit(100, per: .seconds(60), burst: 10)))
///
/// try await limiter.withPermit {
///   try await smtp.send(message)
/// }
/// ```
///
/// The state is one entry of the store that each request changes in one update. So the limits hold for all processes,
/// and after their restarts. <doc:Limits> is the guide, and <doc:LimiterFormat> describes the entry.
///
/// ## The limits
///
/// In every window of t seconds, at most burst + rate × t starts are permitted, by the time of the commit that permits
/// them. A process that is suspended between this commit and its work starts late.
///
/// A permit has a lease, so the permits of a crashed process come back. Until it is released, it is renewed. A process
/// that is suspended for longer than the lease loses its permit while its work runs.
///
/// ## Waiting
///
/// The callers of one object get their permits in the order they asked. An object that waits for the permit of another
/// one looks again after ``LimiterConfiguration/pollInterval``. Objects that wait get their turns; see
/// ``LimiterState``.
public final class StoreLimiter: Sendable {
  /// The store that keeps the state.
  public let base: AnyDataStore<[UInt8]>

  /// The key of the state.
  public let key: StoreKey

  /// The rules.
  public let configuration: LimiterConfiguration

  private let time: SharedClock
  private let clock: any Clock<Duration>
  private let elapsed: ElapsedTime

  /// The number of this object in reservations.
  private let owner = UInt64.random(in: 1 ... .max)

  /// The lock of the caller that is the next one to get a permit, in the order of arrival.
  private let turn = WriteGate()

  /// The caller that has its turn, if it waits.
  private let waits = ConsumerWaits()

  /// The number of callers that wait.
  private let waiterCount = Locked(0)

  /// Creates a limiter that reads nothing until its first use.
  ///
  /// - Parameters:
  ///   - base: The store that keeps the state.
  ///   - key: The key of the state. No other entry of the store may have it.
  ///   - configuration: The rules. They must be the same for all objects with the key.
  ///   - time: The clock of the limits. Defaults to ``SharedClock/boot``. A store that several machines share needs the
  ///     clock of its server.
  ///   - clock: The clock by which callers wait. Defaults to a `ContinuousClock`.
  /// - Throws: ``StoreError`` with `invalidArgument` if the configuration is invalid; `invalidKey`; `unsupported` if
  ///   the store may lose entries or has too small values, or if several machines share it and the clock is that of
  ///   one; `notPermitted` if the store is read-only.
  public init(
    _ base: some DataStore<[UInt8]>, key: StoreKey, configuration: LimiterConfiguration, time: SharedClock = .boot,
    clock: any Clock<Duration> = ContinuousClock()
  ) throws {
    self.base = AnyDataStore(base)
    self.key = key
    self.configuration = configuration
    self.time = time
    self.clock = clock
    elapsed = ElapsedTime(by: clock)
    let information = base.information
    try information.check(updateOf: [key])
    try information.checkKeepsEntries(for: "a limiter")
    func refuse(_ code: StoreError.Code, _ message: String) -> StoreError {
      StoreError(code, during: .open, store: information.name, message: message)
    }
    if let problem = configuration.problem { throw refuse(.invalidArgument, problem) }
    if let limit = information.maximumValueSize, limit < LimiterState.maximumSize {
      throw refuse(
        .unsupported,
        "the state of a limiter has up to \(LimiterState.maximumSize) bytes, and values of the store \(limit)")
    }
    if information.sharing == .betweenHosts, !time.spansHosts {
      throw refuse(
        .unsupported,
        "several machines share the store, so a limiter needs a clock that they all read alike, such as that of the server"
      )
    }
  }

  // MARK: Permits

  /// Runs a closure with a permit that is renewed while the closure runs.
  ///
  /// - Parameters:
  ///   - starts: The number of starts that the closure makes at the same moment. Defaults to 1.
  ///   - body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of ``acquire(starts:)``; the error of `body`.
  public func withPermit<Result>(starts: Int = 1, _ body: () async throws -> Result) async throws -> Result {
    try await acquire(starts: starts).holding(body)
  }

  /// Waits for a permit.
  ///
  /// ```swift
  /// let permit = try await limiter.acquire()
  /// try await permit.holding { try await send(message) }
  /// ```
  ///
  /// - Parameter starts: The number of starts, from 1 to the burst of the rate limit, which are permitted together.
  ///   Defaults to 1.
  /// - Returns: The permit. It must be released after the work.
  /// - Throws: ``StoreError`` with `invalidArgument` if there can never be so many starts at the same moment;
  ///   `corrupted` or `versionMismatch` if the state cannot be read; the errors of the store and of the clock.
  ///   `CancellationError`.
  public func acquire(starts: Int = 1) async throws -> LimiterPermit {
    try check(starts)
    waiterCount.withLock { $0 += 1 }
    defer { waiterCount.withLock { $0 -= 1 } }
    return try await turn.withAccess(.exclusive) {
      var hasWaited = false
      while true {
        // Before the request, so that a release that follows it is noticed.
        let waiter = waits.enter()
        let answer: Result<LimiterPermit, Refusal>
        do {
          answer = try await request(starts, hasWaited: hasWaited)
        } catch {
          waits.leave(waiter)
          throw error
        }
        switch answer {
        case .success(let permit):
          waits.leave(waiter)
          return permit
        case .failure(let refusal):
          let wasReleased = try await waits.wait(waiter) { [clock] in try await clock.sleep(for: refusal.wait) }
          if !wasReleased { hasWaited = true }
        }
      }
    }
  }

  /// Returns a permit if there is one now, and no other caller of this object waits for one.
  ///
  /// ```swift
  /// guard let permit = try await limiter.tryAcquire() else { throw TooManyRequests() }
  /// return try await permit.holding { try await respond() }
  /// ```
  ///
  /// - Parameter starts: The number of starts, from 1 to the burst of the rate limit. Defaults to 1.
  /// - Returns: The permit, or `nil`.
  /// - Throws: As ``acquire(starts:)``.
  public func tryAcquire(starts: Int = 1) async throws -> LimiterPermit? {
    try check(starts)
    guard waiterCount.withLock({ $0 == 0 }) else { return nil }
    return switch try await request(starts, hasWaited: false) {
    case .success(let permit): permit
    case .failure: nil
    }
  }

  /// Takes starts if they are available now, without a permit and without waiting, in one commit.
  ///
  /// A refusal writes nothing, apart from the correction of a clock that has jumped.
  ///
  /// ```swift
  /// let decision = try await limiter.takeStarts()
  /// guard decision.isGranted else { throw TooManyRequests(retryAfter: decision.retryAfter) }
  /// ```
  ///
  /// - Parameters:
  ///   - starts: The number of starts, from 1 to the burst of the rate limit. Defaults to 1.
  ///   - maximum: The number of starts that are taken instead if so many are available, to be spent later. Defaults to
  ///     `nil`, for `starts`.
  /// - Returns: The decision.
  /// - Throws: ``StoreError`` with `invalidArgument` if there can never be so many starts at the same moment, or if the
  ///   configuration has no rate or limits the number of permits; `corrupted` or `versionMismatch` if the state cannot be
  ///   read; the errors of the store and of the clock.
  public func takeStarts(_ starts: Int = 1, upTo maximum: Int? = nil) async throws -> RateDecision {
    try check(starts)
    guard let limit = configuration.rate, configuration.concurrency == nil else {
      throw StoreError(
        .invalidArgument, during: .acquire, store: base.information.name,
        message: "starts without a permit need a configuration with a rate and without a number of permits")
    }
    let request = LimiterState.Request(id: .random(in: 1 ... .max), owner: owner, starts: starts)
    return try await change { state, reading in
      state.take(request, upTo: maximum ?? starts, by: limit, at: reading)
    }
  }

  // MARK: Parts

  /// A permit that was stored.
  struct Grant: Sendable {
    let id: UInt64
    let starts: Int
    let time: ClockReading
    let previousRate: RateLimitState
  }

  /// The answer to a request without a permit.
  private struct Refusal: Error {
    let wait: Duration
  }

  private func check(_ starts: Int) throws {
    let limit = configuration.rate?.burst ?? .max
    guard starts < 1 || starts > limit else { return }
    throw StoreError(
      .invalidArgument, during: .acquire, store: base.information.name,
      message: starts < 1
        ? "a permit must have at least 1 start, not \(starts)"
        : "a permit has at most as many starts as the burst of the rate limit, \(limit), not \(starts)")
  }

  private func request(_ starts: Int, hasWaited: Bool) async throws -> Result<LimiterPermit, Refusal> {
    let request = LimiterState.Request(
      id: .random(in: 1 ... .max), owner: owner, starts: starts, hasWaited: hasWaited)
    let grant: Result<Grant, Refusal> = try await change { [configuration] state, reading in
      let rate = state.rate
      return switch state.acquire(request, by: configuration, at: reading) {
      case .granted: .success(Grant(id: request.id, starts: starts, time: reading, previousRate: rate))
      case .refused(let wait): .failure(Refusal(wait: wait))
      }
    }
    return grant.map { LimiterPermit($0, of: self) }
  }

  /// Releases a permit and returns starts, whatever becomes of the task; see ``LimiterPermit``.
  func release(_ permit: LimiterPermit, usedStarts: Int?, keepsPermit: Bool) async throws {
    let releases = !keepsPermit && configuration.concurrency != nil
    let used = usedStarts.flatMap { $0 < permit.starts && configuration.rate != nil ? max(0, $0) : nil }
    guard releases || used != nil else { return }
    let (id, time, previousRate) = (permit.id, permit.time, permit.previousRate)
    try await Task { [self] in
      try await update { [configuration] state in
        if releases { _ = state?.release(id) }
        guard let used else { return }
        _ = state?.returnStarts(of: id, except: used, to: previousRate, by: configuration, at: time)
      }
    }.value
    waits.signal()
  }

  /// Renews a permit until the task is cancelled or the permit no longer exists.
  func keepRenewing(_ id: UInt64) async {
    while true {
      do {
        try await clock.sleep(for: configuration.lease / 3)
        let exists = try await change { [configuration] state, reading in
          state.renew(id, by: configuration, at: reading)
        }
        guard exists else { return }
      } catch is CancellationError {
        return
      } catch {
        // Two thirds of the lease are left for another attempt.
        continue
      }
    }
  }

  /// Changes the state at the present time, in one update.
  ///
  /// - Parameter body: A closure that changes the state. It may run several times.
  private func change<Result: Sendable>(
    _ body: @escaping @Sendable (inout LimiterState, ClockReading) -> Result
  ) async throws -> Result {
    let sent = elapsed.nanoseconds
    let reading = try await time.reading()
    let received = elapsed.nanoseconds
    return try await update { [elapsed] stored in
      // In the update, because it may have waited for others.
      let now = elapsed.nanoseconds
      let present = reading.advanced(byAtLeast: now - received, atMost: now - sent)
      var state = stored ?? LimiterState(origin: present.origin)
      defer { stored = state }
      return body(&state, present)
    }
  }

  /// Changes the state in one update, and writes nothing if it stays the same.
  private func update<Result: Sendable>(
    _ body: @escaping @Sendable (inout LimiterState?) -> Result
  ) async throws -> Result {
    try await base.update(deciding: [key]) { [self] slots in
      let stored = try slots[0].map(state)
      var state = stored
      let result = body(&state)
      guard let state, state != stored else { return .discard(result) }
      slots[0] = state.record
      return .commit(result)
    }
  }

  private func state(of record: [UInt8]) throws -> LimiterState {
    do {
      return try LimiterState(record: record)
    } catch {
      let isDamaged = error == .damaged
      throw StoreError(
        isDamaged ? .corrupted : .versionMismatch, during: .acquire, store: base.information.name, key: key,
        message: isDamaged
          ? "the state of the limiter is damaged; remove the entry when no program uses it"
          : "the state of the limiter was written by a newer version of Larder", underlying: error)
    }
  }
}
