import ArgumentParser

/// How long an entry shall live, as it is written on the command line: a number and a unit, like `500ms`.
struct LifetimeArgument: ExpressibleByArgument, Equatable {
  /// The time, which is more than zero.
  let duration: Duration

  /// Reads a time.
  ///
  /// - Parameter argument: Digits, and `ms`, `s`, `m`, `h` or `d` behind them.
  init?(argument: String) {
    guard let time = DurationArgument(argument: argument), time.duration > .zero else { return nil }
    duration = time.duration
  }
}
