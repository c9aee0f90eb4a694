#if Metrics
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Tells the time in nanoseconds from a start of its own.
///
/// Without a clock it asks the system directly: the arithmetic of `Duration`, which has 128 bits, costs as much as a
/// reading of the clock.
struct MonotonicTime: Sendable {
  /// Reads a clock; `nil` for that of the system.
  private let elapsed: (@Sendable () -> UInt64)?

  /// Reads the system's monotonic clock.
  init() {
    elapsed = nil
  }

  /// Reads a clock.
  init<Source: Clock>(_ clock: Source) where Source.Duration == Duration {
    let start = clock.now
    elapsed = { start.duration(to: clock.now).wholeNanoseconds }
  }

  /// The nanoseconds since the start.
  var now: UInt64 {
    if let elapsed { return elapsed() }
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
  }
}

extension Duration {
  /// The nanoseconds, none where it is negative.
  var wholeNanoseconds: UInt64 {
    UInt64(clamping: attoseconds / 1_000_000_000)
  }
}
#endif
