import ArgumentParser
import Larder
import LarderExpiry

/// A duration on the command line: a number and a unit, such as `500ms`.
struct DurationArgument: ExpressibleByArgument, Equatable {
  /// The units by name, in milliseconds.
  private static let units: [(name: String, milliseconds: Int64)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]

  /// The duration, which may be zero.
  let duration: Duration

  /// Creates an argument from a duration.
  init(_ duration: Duration) {
    self.duration = duration
  }

  /// Parses a duration.
  ///
  /// - Parameter argument: Digits, followed by `ms`, `s`, `m`, `h` or `d`.
  init?(argument: String) {
    let digits = argument.prefix { "0"..."9" ~= $0 }
    guard let number = Int64(digits),
      let unit = DurationArgument.units.first(where: { $0.name == argument.dropFirst(digits.count) })
    else { return nil }
    let (milliseconds, overflows) = number.multipliedReportingOverflow(by: unit.milliseconds)
    guard !overflows else { return nil }
    duration = .milliseconds(milliseconds)
  }

  /// Checks that the duration can be that of a lease.
  ///
  /// - Throws: `ValidationError` if the duration is zero.
  func checkAsLease() throws {
    guard duration > .zero else { throw ValidationError("--lease must be greater than zero") }
  }

  /// The duration in seconds, as the help shows a default.
  var defaultValueDescription: String { "\(duration.components.seconds)s" }
}

/// A time to live on the command line: a number and a unit, such as `500ms`.
struct TimeToLiveArgument: ExpressibleByArgument, Equatable {
  /// The time to live, which is greater than zero.
  let duration: Duration

  /// Parses a time to live.
  ///
  /// - Parameter argument: Digits, followed by `ms`, `s`, `m`, `h` or `d`.
  init?(argument: String) {
    guard let time = DurationArgument(argument: argument), time.duration > .zero else { return nil }
    duration = time.duration
  }
}

/// The time to live of the entries that a verb writes.
struct TimeToLiveOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The time to live of the entry, such as 500ms, 2s, 5m, 1h or 7d. Defaults to no limit. A store created with it holds values that expire.",
      valueName: "time"))
  var ttl: TimeToLiveArgument?

  /// The time to live of the entries; `nil` if the option is missing.
  var timeToLive: TimeToLive? { ttl.map { .after($0.duration) } }
}
