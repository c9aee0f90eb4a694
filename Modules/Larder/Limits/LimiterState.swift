/// The permits and the starts of a limiter, as they are stored.
///
/// This is plain state without any I/O, on which ``StoreLimiter`` works in one commit for each change. All times are in
/// nanoseconds by one ``SharedClock``.
///
/// ## Clocks that jump
///
/// The limits hold whatever the clock does, apart from a jump forward that cannot be told from passing time:
///
/// - If the clock has another origin, because the machine was restarted, the time since the last change is unknown.
///   Then no start is available at first, and each permit has its whole lease before it.
/// - If the clock was set back, a stored time can be further ahead than it can ever have been. It is moved to the
///   latest time that it can have.
///
/// ## Order
///
/// A limiter object that is refused again after it has waited makes a reservation: one permit and the starts that it
/// needs are kept for it, so an object that is faster, or has more callers, cannot take them all. One object at a time
/// has a reservation that ends if its owner does not come back.
public struct LimiterState: Sendable, Hashable {
  /// A permit that has not been released.
  struct Permit: Sendable, Hashable {
    let id: UInt64
    /// The duration of the lease.
    var lease: Int64
    /// The end of the lease.
    var end: Int64
  }

  /// A permit and starts that are kept for a limiter object.
  struct Reservation: Sendable, Hashable {
    let owner: UInt64
    let starts: UInt32
    /// The time when the reservation ends, and its duration at most.
    var end: Int64
    var duration: Int64
  }

  /// A request for a permit.
  public struct Request: Sendable, Hashable {
    /// The number that identifies the permit.
    public var id: UInt64

    /// The number that identifies the limiter object.
    public var owner: UInt64

    /// The number of starts, from 1 to the burst of the rate limit.
    public var starts: Int

    /// A Boolean value that indicates whether the object has been refused before and has waited since.
    public var hasWaited: Bool

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - id: A random number that identifies the permit; not 0.
    ///   - owner: A random number that identifies the limiter object; not 0.
    ///   - starts: The number of starts. Defaults to 1.
    ///   - hasWaited: A Boolean value that indicates whether the object has been refused before and has waited since.
    ///     Defaults to `false`.
    public init(id: UInt64, owner: UInt64, starts: Int = 1, hasWaited: Bool = false) {
      self.id = id
      self.owner = owner
      self.starts = starts
      self.hasWaited = hasWaited
    }
  }

  /// The answer to a request for a permit.
  public enum Decision: Sendable, Hashable {
    /// The permit was granted.
    case granted
    /// The request must be repeated after a time, or earlier if a permit is released.
    case refused(retryAfter: Duration)
  }

  var origin: UInt128

  /// The starts that the rate limit permits.
  public internal(set) var rate = RateLimitState()

  /// The number of the permit with the latest starts, which can be returned; otherwise 0.
  var latestStart: UInt64 = 0

  var permits: [Permit] = []
  var reservation: Reservation?

  /// Creates the state before the first request.
  ///
  /// - Parameter origin: The origin of the clock.
  public init(origin: UInt128) {
    self.origin = origin
  }

  /// Returns the number of permits whose leases have not ended.
  ///
  /// - Parameter reading: The time, by the same clock.
  public func permitCount(at reading: ClockReading) -> Int {
    permits.count { origin != reading.origin || $0.end > reading.earliest }
  }

  /// Returns whether the state is as before the first request, so that it need not be stored.
  ///
  /// If the clock has jumped, the state is corrected, and must then be stored.
  ///
  /// - Parameters:
  ///   - configuration: The rules.
  ///   - reading: The time.
  public mutating func isIdle(by configuration: LimiterConfiguration, at reading: ClockReading) -> Bool {
    follow(reading, configuration)
    permits.removeAll { $0.end <= reading.earliest }
    if let reservation, reservation.end <= reading.earliest { self.reservation = nil }
    let fullAt = configuration.rate.map { rate.wholeFullAt(by: $0) } ?? rate.fullAt
    return permits.isEmpty && reservation == nil && fullAt <= reading.earliest
  }

  // MARK: Requests

  /// Grants a permit with starts, or refuses it.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - configuration: The rules.
  ///   - reading: The time.
  /// - Returns: The decision. The state may also change if the request is refused, and must then be stored.
  public mutating func acquire(
    _ request: Request, by configuration: LimiterConfiguration, at reading: ClockReading
  ) -> Decision {
    follow(reading, configuration)
    permits.removeAll { $0.end <= reading.earliest }
    if let reservation, reservation.end <= reading.earliest { self.reservation = nil }
    // The permit and the starts that are kept for another object are not available.
    let other = reservation.flatMap { $0.owner == request.owner ? nil : $0 }
    var wait = permitWait(keeping: other, configuration, reading)
    if let limit = configuration.rate {
      wait = max(wait, rate.wait(for: request.starts + Int(other?.starts ?? 0), by: limit, at: reading))
    }
    guard wait > 0 else {
      if let limit = configuration.rate {
        rate.note(request.starts, by: limit, at: reading)
        latestStart = request.id
      }
      if configuration.concurrency != nil {
        permits.append(newPermit(request.id, configuration, reading))
      }
      if other == nil { reservation = nil }
      return .granted
    }
    if let other {
      wait = min(wait, other.end - reading.earliest)
    } else if request.hasWaited {
      reserve(for: request, wait, configuration, reading)
    }
    return .refused(retryAfter: .nanoseconds(wait))
  }

  /// Takes starts if they are available, without a permit.
  ///
  /// - Parameters:
  ///   - request: The request, with the least number of starts.
  ///   - maximum: The greatest number of starts.
  ///   - limit: The limit.
  ///   - reading: The time.
  /// - Returns: The decision. As many starts are taken as are available, from the least to the greatest number.
  public mutating func take(
    _ request: Request, upTo maximum: Int, by limit: RateLimit, at reading: ClockReading
  ) -> RateDecision {
    let configuration = LimiterConfiguration(rate: limit)
    follow(reading, configuration)
    var larger = request
    larger.starts = max(request.starts, min(maximum, rate.available(by: limit, at: reading)))
    var taken = larger.starts
    var decision = acquire(larger, by: configuration, at: reading)
    if decision != .granted, larger != request {
      // Some of the starts are kept for another object.
      taken = request.starts
      decision = acquire(request, by: configuration, at: reading)
    }
    var wait = Duration.zero
    if case .refused(let retryAfter) = decision { (taken, wait) = (0, retryAfter) }
    return RateDecision(
      starts: taken, remaining: rate.available(by: limit, at: reading),
      fullAfter: .nanoseconds(rate.wait(untilFullBy: limit, at: reading)), retryAfter: wait)
  }

  /// Resets the lease of a permit, so that it ends one lease from now.
  ///
  /// - Parameters:
  ///   - id: The number of the permit.
  ///   - configuration: The rules.
  ///   - reading: The time.
  /// - Returns: A Boolean value that indicates whether the permit exists. If not, its lease has ended, and another one
  ///   may have been granted in its place.
  public mutating func renew(
    _ id: UInt64, by configuration: LimiterConfiguration, at reading: ClockReading
  ) -> Bool {
    follow(reading, configuration)
    // A lease that has ended is renewed if no other permit was granted since.
    guard let index = permits.firstIndex(where: { $0.id == id }) else { return false }
    permits[index] = newPermit(id, configuration, reading)
    return true
  }

  /// Removes a permit.
  ///
  /// - Parameter id: The number of the permit.
  /// - Returns: A Boolean value that indicates whether the permit existed.
  public mutating func release(_ id: UInt64) -> Bool {
    guard let index = permits.firstIndex(where: { $0.id == id }) else { return false }
    permits.remove(at: index)
    return true
  }

  /// Returns starts of a permit that do not happen.
  ///
  /// They can be returned only if no other start has been permitted since. Otherwise they would count as available at a
  /// time when they were not, so a window could have more starts than the limit.
  ///
  /// - Parameters:
  ///   - id: The number of the permit.
  ///   - used: The number of starts that happen. Defaults to 0.
  ///   - rate: The starts that the rate limit permitted before the permit.
  ///   - configuration: The rules.
  ///   - reading: The time when the permit was granted.
  /// - Returns: A Boolean value that indicates whether the starts were returned.
  public mutating func returnStarts(
    of id: UInt64, except used: Int = 0, to rate: RateLimitState, by configuration: LimiterConfiguration,
    at reading: ClockReading
  ) -> Bool {
    guard latestStart == id else { return false }
    self.rate = rate
    latestStart = 0
    if used > 0, let limit = configuration.rate { self.rate.note(used, by: limit, at: reading) }
    return true
  }

  // MARK: Parts

  private func newPermit(_ id: UInt64, _ configuration: LimiterConfiguration, _ reading: ClockReading) -> Permit {
    let lease = configuration.lease.wholeNanoseconds
    return Permit(id: id, lease: lease, end: reading.latest.addingSaturating(lease))
  }

  /// Returns how long to wait for a permit, in nanoseconds; 0 if there is one.
  private func permitWait(
    keeping other: Reservation?, _ configuration: LimiterConfiguration, _ reading: ClockReading
  ) -> Int64 {
    guard let limit = configuration.concurrency, permits.count + (other == nil ? 0 : 1) >= limit else { return 0 }
    // Another object may release a permit at any time, without a notice.
    let ends = permits.map(\.end) + (other.map { [$0.end] } ?? [])
    let untilEnd = ends.min().map { $0.addingSaturating(-reading.earliest) } ?? .max
    return max(1, min(untilEnd, configuration.pollInterval.wholeNanoseconds))
  }

  /// Keeps a permit and starts for an object until well after its next request.
  private mutating func reserve(
    for request: Request, _ wait: Int64, _ configuration: LimiterConfiguration, _ reading: ClockReading
  ) {
    let pause = configuration.pollInterval.wholeNanoseconds
    // A reservation that lasts until after the next request is not written again.
    if let reservation, reservation.end >= reading.latest.addingSaturating(wait).addingSaturating(pause) { return }
    let duration = wait.addingSaturating(pause).addingSaturating(pause).addingSaturating(pause)
    reservation = Reservation(
      owner: request.owner, starts: UInt32(clamping: request.starts), end: reading.latest.addingSaturating(duration),
      duration: duration)
  }

  /// Corrects the stored times if the clock has another origin or was set back.
  private mutating func follow(_ reading: ClockReading, _ configuration: LimiterConfiguration) {
    let isSameClock = origin == reading.origin
    origin = reading.origin
    if !isSameClock {
      rate.empty()
      latestStart = 0
    }
    if let limit = configuration.rate { rate.bound(by: limit, at: reading) }
    for index in permits.indices {
      let latestEnd = reading.latest.addingSaturating(permits[index].lease)
      permits[index].end = isSameClock ? min(permits[index].end, latestEnd) : latestEnd
    }
    guard let kept = reservation else { return }
    // The owner of a reservation of another boot makes a new one.
    let latestEnd = reading.latest.addingSaturating(kept.duration)
    reservation = isSameClock ? kept : nil
    if isSameClock { reservation?.end = min(kept.end, latestEnd) }
  }
}
