import ArgumentParser

/// A time as it is written on the command line: a number and a unit, like `500ms`.
struct DurationArgument: ExpressibleByArgument, Equatable {
  /// The units, by name; each one is so many milliseconds.
  private static let units: [(name: String, milliseconds: Int64)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]

  /// The time, which may be zero.
  let duration: Duration

  /// Takes a time.
  init(_ duration: Duration) {
    self.duration = duration
  }

  /// Reads a time.
  ///
  /// - Parameter argument: Digits, and `ms`, `s`, `m`, `h` or `d` behind them.
  init?(argument: String) {
    let digits = argument.prefix { "0"..."9" ~= $0 }
    guard let number = Int64(digits),
      let unit = DurationArgument.units.first(where: { $0.name == argument.dropFirst(digits.count) })
    else { return nil }
    let (milliseconds, overflows) = number.multipliedReportingOverflow(by: unit.milliseconds)
    guard !overflows else { return nil }
    duration = .milliseconds(milliseconds)
  }

  /// Refuses a lease that is none.
  ///
  /// - Throws: `ValidationError`.
  func checkAsLease() throws {
    guard duration > .zero else { throw ValidationError("--lease must be more than nothing") }
  }

  /// The time as a default of the help: in seconds.
  var defaultValueDescription: String { "\(duration.components.seconds)s" }
}
