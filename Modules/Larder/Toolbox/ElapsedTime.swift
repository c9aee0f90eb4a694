import Foundation

/// The time since a moment, by a clock that can be injected.
///
/// A `ContinuousClock` is read by a direct call of the system. The 128-bit arithmetic of its instants costs as much as
/// the reading, which the limits of metrics and expiry in `Docs/BenchmarkResults.md` do not allow.
///
/// ```swift
/// let elapsed = ElapsedTime(by: ContinuousClock())
/// try await commit(batch)
/// if elapsed.duration > .seconds(1) { logger.warning("slow write") }
/// ```
public struct ElapsedTime: Sendable {
  /// Reads an injected clock; `nil` for a `ContinuousClock`.
  @usableFromInline let reading: (@Sendable () -> Int64)?

  /// Creates the time by a clock.
  ///
  /// - Parameter clock: The clock.
  public init(by clock: any Clock<Duration>) {
    reading = clock is ContinuousClock ? nil : ElapsedTime.reading(of: clock)
  }

  private static func reading(of clock: some Clock<Duration>) -> @Sendable () -> Int64 {
    let start = clock.now
    return { start.duration(to: clock.now).wholeNanoseconds }
  }

  /// The time in nanoseconds, from an arbitrary start.
  @inlinable
  public var nanoseconds: Int64 {
    if let reading { return reading() }
    return ElapsedTime.systemNanoseconds()
  }

  @usableFromInline
  static func systemNanoseconds() -> Int64 {
    var time = timespec()
    #if canImport(Darwin)
    clock_gettime(CLOCK_MONOTONIC_RAW, &time)
    #else
    clock_gettime(CLOCK_BOOTTIME, &time)
    #endif
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// The time from an arbitrary start.
  public var duration: Duration { .nanoseconds(nanoseconds) }
}

extension Clock where Duration == Swift.Duration {
  /// Sleeps, and returns whether the time has passed.
  ///
  /// A task that repeats a step until it is cancelled needs no error of the sleep:
  ///
  /// ```swift
  /// while await ContinuousClock().hasSlept(for: .seconds(60)) { print("another minute") }
  /// ```
  ///
  /// - Parameter duration: The duration.
  /// - Returns: `false` if the task was cancelled before the duration was over.
  public func hasSlept(for duration: Duration) async -> Bool {
    do {
      try await sleep(for: duration)
      return true
    } catch {
      return false
    }
  }
}

extension Duration {
  /// The duration in whole nanoseconds, rounded toward zero and limited to 146 years, so two of them can be added.
  public var wholeNanoseconds: Int64 {
    let nanoseconds = attoseconds / 1_000_000_000
    return Int64(max(-Int128(Int64.max / 2), min(Int128(Int64.max / 2), nanoseconds)))
  }
}
