public import Larder

/// Rate limits by key, such as for each client of a server, across all programs that share a store.
///
/// ```swift
/// let limiter = try RateLimiter(
///   bytes, prefix: "limits/", limit: RateLimit(100, per: .seconds(60), burst: 20))
///
/// let decision = try await limiter.take(forKey: StoreKey(client))
/// for (name, value) in limiter.fields(of: decision) { response.headers[name] = value }
/// if !decision.isGranted { response.status = .tooManyRequests }
/// ```
///
/// Each key has one entry of the store, which each granted request changes in one commit. The mechanism is that of a
/// `StoreLimiter`, without permits and without waiting, so the limit also holds across restarts.
///
/// ## Shares
///
/// With a `share` greater than 1, an object takes so many starts in one commit and spends them without another one. It also
/// remembers a refusal for as long as it is certain, by its own steady clock. The commits are fewer by that factor. Each
/// object can then have one share left from earlier, so that a window can have one share more for each object.
public final class RateLimiter: Sendable {
  /// The greatest number of keys of which an object remembers shares and refusals.
  ///
  /// If there are more, it forgets those without starts. If that is not enough, it forgets all, and the starts of their
  /// shares are lost.
  private static let maximumKeyCount = 10_000

  /// The knowledge of an object about a key between two commits.
  private struct Known: Sendable {
    /// The starts that were taken and not spent.
    var starts: Int
    /// The starts of the store that were available after the latest commit.
    var remaining: Int
    /// The time when the whole burst is available, in nanoseconds of the own clock.
    var fullAt: Int64
    /// The time until which a request of some starts is refused, or `nil`.
    var refusal: (starts: Int, end: Int64)?
  }

  /// The store of the limits.
  public let base: AnyDataStore<[UInt8]>

  /// The prefix of all keys of the limits in the store.
  public let prefix: StoreKey

  /// The limit of each key.
  public let limit: RateLimit

  /// The number of starts that an object takes in one commit.
  public let share: Int

  private let time: SharedClock
  private let clock: any Clock<Duration>
  private let elapsed: ElapsedTime
  private let known = Locked<[StoreKey: Known]>([:])
  private let callers = CallerQueues<StoreKey>()

  /// Creates the limits of a prefix, without reading anything.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - prefix: The prefix of the keys of all limits. No other entry may have a key that begins with it.
  ///   - limit: The limit of each key. It must be the same in all programs.
  ///   - share: The number of starts that an object takes in one commit, from 1 to the burst. Defaults to 1.
  ///   - time: The clock of the limits. Defaults to `SharedClock.boot`. A store that several machines share needs the clock
  ///     of its server.
  ///   - clock: The steady clock of this process. Defaults to a `ContinuousClock`.
  /// - Throws: `StoreError` with `invalidArgument` if the limit or the share is invalid; the errors of a `StoreLimiter`.
  public init(
    _ base: some DataStore<[UInt8]>, prefix: StoreKey, limit: RateLimit, share: Int = 1, time: SharedClock = .boot,
    clock: any Clock<Duration> = ContinuousClock()
  ) throws {
    self.base = AnyDataStore(base)
    self.prefix = prefix
    self.limit = limit
    self.share = share
    self.time = time
    self.clock = clock
    elapsed = ElapsedTime(by: clock)
    guard (1...max(1, limit.burst)).contains(share) else {
      throw StoreError(
        .invalidArgument, during: .open, store: base.information.name,
        message:
          "the share of a rate limiter must be between 1 and the burst of the limit, \(limit.burst), not \(share)")
    }
    // Checks the store and the limit.
    _ = try limiter(forKey: "k")
  }

  // MARK: Decisions

  /// Takes starts of a key if they are available now.
  ///
  /// ```swift
  /// let decision = try await limiter.take(forKey: StoreKey(client))
  /// guard decision.isGranted else { throw TooManyRequests(retryAfter: decision.retryAfter) }
  /// ```
  ///
  /// - Parameters:
  ///   - starts: The number of starts, from 1 to the burst of the limit. Defaults to 1.
  ///   - key: The key.
  /// - Returns: The decision.
  /// - Throws: `StoreError` with `invalidArgument` if there can never be so many starts at the same moment; `invalidKey`;
  ///   `corrupted` or `versionMismatch` if the state cannot be read; the errors of the store and of the clock.
  ///   `CancellationError`.
  public func take(_ starts: Int = 1, forKey key: StoreKey) async throws -> RateDecision {
    let limiter = try limiter(forKey: key)
    guard share > 1, starts >= 1, starts <= limit.burst else { return try await limiter.takeStarts(starts) }
    if let decision = decide(starts, forKey: key) { return decision }
    // One caller at a time takes a share of a key.
    try await callers.enter(key)
    defer { callers.leave(key) }
    if let decision = decide(starts, forKey: key) { return decision }
    let reserved = reserveStarts(forKey: key)
    let decision: RateDecision
    do {
      decision = try await limiter.takeStarts(starts - reserved, upTo: max(starts - reserved, share))
    } catch {
      known.withLock { $0[key]?.starts += reserved }
      throw error
    }
    let now = elapsed.nanoseconds
    return known.withLock { known in
      if known.count >= Self.maximumKeyCount, known[key] == nil {
        known = known.filter { $0.value.starts > 0 }
        // Otherwise each new key would search all others.
        if known.count > Self.maximumKeyCount / 2 { known = [:] }
      }
      let left = reserved + (decision.isGranted ? decision.starts - starts : 0)
      let refusal = decision.isGranted ? nil : (starts, now.addingSaturating(decision.retryAfter.wholeNanoseconds))
      known[key] = Known(
        starts: left, remaining: decision.remaining,
        fullAt: now.addingSaturating(decision.fullAfter.wholeNanoseconds), refusal: refusal)
      return RateDecision(
        starts: decision.isGranted ? starts : 0, remaining: decision.remaining + left, fullAfter: decision.fullAfter,
        retryAfter: decision.retryAfter)
    }
  }

  /// Removes the starts that were taken and not spent, so that no other caller spends them while the store grants the rest.
  private func reserveStarts(forKey key: StoreKey) -> Int {
    known.withLock { known in
      defer { known[key]?.starts = 0 }
      return known[key]?.starts ?? 0
    }
  }

  /// Decides by what is known of a key, or returns `nil` if the store must decide.
  private func decide(_ starts: Int, forKey key: StoreKey) -> RateDecision? {
    let now = elapsed.nanoseconds
    return known.withLock { known in
      guard var state = known[key] else { return nil }
      let fullAfter = Duration.nanoseconds(max(0, state.fullAt.addingSaturating(-now)))
      if starts >= 1, starts <= state.starts {
        state.starts -= starts
        known[key] = state
        return RateDecision(
          starts: starts, remaining: state.starts + state.remaining, fullAfter: fullAfter, retryAfter: .zero)
      }
      // Nothing makes starts available earlier.
      guard let refusal = state.refusal, starts >= refusal.starts, starts <= limit.burst, now < refusal.end else {
        return nil
      }
      return RateDecision(
        starts: 0, remaining: state.starts + state.remaining, fullAfter: fullAfter,
        retryAfter: .nanoseconds(refusal.end - now))
    }
  }

  private func limiter(forKey key: StoreKey) throws -> StoreLimiter {
    try StoreLimiter(
      base, key: prefix.appending(key), configuration: LimiterConfiguration(rate: limit), time: time, clock: clock)
  }

  // MARK: Fields

  /// Returns the header fields that tell an HTTP client of a limit.
  ///
  /// They are `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` of RFC 9110 if
  /// the request was refused. The quota is the burst, and the window is the time when it becomes available.
  ///
  /// - Parameters:
  ///   - decision: The decision.
  ///   - policy: The name of the policy, in ASCII letters, digits, `-` and `_`. Defaults to `default`.
  /// - Returns: The names and the values.
  public func fields(of decision: RateDecision, policy: String = "default") -> [(name: String, value: String)] {
    let name = "\"" + policy.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") } + "\""
    let window = limit.interval * limit.burst / max(1, limit.count)
    var fields = [
      ("RateLimit-Policy", "\(name);q=\(limit.burst);w=\(window.wholeSeconds)"),
      ("RateLimit", "\(name);r=\(decision.remaining);t=\(decision.fullAfter.wholeSeconds)"),
    ]
    if !decision.isGranted { fields.append(("Retry-After", "\(max(1, decision.retryAfter.wholeSeconds))")) }
    return fields
  }

  // MARK: Cleaning

  /// Removes the entries of keys whose whole burst is available.
  ///
  /// ```swift
  /// try await limiter.removeIdle()  // for example once a day
  /// ```
  ///
  /// - Returns: The number of removed entries.
  /// - Throws: `StoreError` with `corrupted` or `versionMismatch` if a state cannot be read, after all others; the errors of
  ///   the store and of the clock.
  @discardableResult
  public func removeIdle() async throws -> Int {
    let (configuration, information) = (LimiterConfiguration(rate: limit), base.information)
    let partSize = min(256, information.maximumChangeCount ?? .max)
    return try await base.removing(in: .prefix(prefix), partSize: partSize) { [self] keys in
      let sent = elapsed.nanoseconds
      let reading = try await time.reading()
      let received = elapsed.nanoseconds
      return try await base.update(keys) { [elapsed] slots in
        // In the update, because there may have been starts since the reading.
        let now = elapsed.nanoseconds
        let present = reading.advanced(byAtLeast: now - received, atMost: now - sent)
        var (removed, failure): (Int, (any Error)?) = (0, nil)
        for index in slots.indices {
          guard let record = slots[index] else { continue }
          let before: LimiterState
          do {
            before = try information.reading(keys[index], for: .acquire) { () throws(RecordProblem) in
              do throws(LimiterState.RecordProblem) {
                return try LimiterState(record: record)
              } catch {
                throw error == .damaged ? .damaged : .newerVersion
              }
            }
          } catch {
            failure = failure ?? error
            continue
          }
          var state = before
          if state.isIdle(by: configuration, at: present) {
            slots[index] = nil
            removed += 1
          } else if state != before {
            slots[index] = state.record
          }
        }
        return (removed, failure)
      }
    }
  }
}

extension Duration {
  /// The duration in seconds, rounded up.
  fileprivate var wholeSeconds: Int64 {
    let nanoseconds = wholeNanoseconds
    return nanoseconds / 1_000_000_000 + (nanoseconds % 1_000_000_000 > 0 ? 1 : 0)
  }
}
