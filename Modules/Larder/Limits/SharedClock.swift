/// A reading of a ``SharedClock``.
///
/// A clock that is read on another machine is known only within the time that the reading took. The true time lies
/// between ``earliest`` and ``latest``. They are equal for a clock of the same machine.
public struct ClockReading: Sendable, Hashable {
  /// The identity of the clock's zero.
  ///
  /// Readings with different origins cannot be compared.
  public let origin: UInt128

  /// The earliest possible time, in nanoseconds since the origin.
  public let earliest: Int64

  /// The latest possible time, in nanoseconds since the origin.
  public let latest: Int64

  /// Creates a reading.
  ///
  /// - Parameters:
  ///   - origin: The identity of the clock's zero.
  ///   - nanoseconds: The time since the origin, in nanoseconds.
  ///   - uncertainty: By how much later the true time can be, in nanoseconds, at least 0. Defaults to 0.
  public init(origin: UInt128, nanoseconds: Int64, uncertainty: Int64 = 0) {
    self.origin = origin
    // So that it can be negated.
    earliest = max(nanoseconds, -.max)
    latest = earliest.addingSaturating(max(0, uncertainty))
  }
}

/// A clock that all programs that share a store read alike.
///
/// The programs that share a ``StoreLimiter`` compare times that others have stored, so their times must come from one
/// place:
///
/// - ``boot``, for stores of one machine. It never jumps, whatever happens to the wall clock.
/// - The clock of a server, for stores that several machines share, such as that of a `PostgresDatabase`.
/// - A clock of your own, or one that a test moves.
///
/// ```swift
/// let limiter = try StoreLimiter(
///   bytes, key: "limits/mail", configuration: LimiterConfiguration(concurrency: 5), time: database.serverClock)
/// ```
public struct SharedClock: Sendable {
  /// A Boolean value that indicates whether the clock is the same on all machines.
  public let spansHosts: Bool

  private let read: @Sendable () async throws -> ClockReading

  /// Creates a clock.
  ///
  /// - Parameters:
  ///   - spansHosts: A Boolean value that indicates whether the clock is the same on all machines.
  ///   - read: A closure that reads the clock. The reading is the time at some moment of the call.
  public init(spansHosts: Bool, _ read: @escaping @Sendable () async throws -> ClockReading) {
    self.spansHosts = spansHosts
    self.read = read
  }

  /// Reads the clock.
  ///
  /// - Throws: The error of the closure that reads it. The clock ``boot`` throws ``StoreError`` with `unsupported` if
  ///   the system does not identify its boot.
  public func reading() async throws -> ClockReading {
    try await read()
  }
}

extension ClockReading {
  /// Returns the reading at a later moment.
  ///
  /// A reading is the time at some moment of a call. By a steady clock of your own, at least the time since the end of the call has
  /// passed, and at most the time since its beginning.
  ///
  /// - Parameters:
  ///   - least: The least time that can have passed, in nanoseconds.
  ///   - most: The most time that can have passed, in nanoseconds.
  /// - Returns: The reading, which is less certain by the difference of the two.
  public func advanced(byAtLeast least: Int64, atMost most: Int64) -> ClockReading {
    let start = earliest.addingSaturating(max(0, least))
    let end = latest.addingSaturating(max(0, most))
    return ClockReading(origin: origin, nanoseconds: start, uncertainty: end - start)
  }
}
