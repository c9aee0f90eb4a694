package import ArgumentParser
package import Larder
import LarderExpiry

/// A duration on the command line: a number and a unit, such as `500ms`.
package struct DurationArgument: ExpressibleByArgument, Equatable {
  /// The duration, which may be zero.
  package let duration: Duration

  /// Creates an argument from a duration.
  package init(_ duration: Duration) {
    self.duration = duration
  }

  /// Parses a duration.
  ///
  /// - Parameter argument: Digits, followed by `ms`, `s`, `m`, `h` or `d`.
  package init?(argument: String) {
    guard let duration = UnitText.duration(argument) else { return nil }
    self.duration = duration
  }

  /// Checks that the duration can be that of a lease.
  ///
  /// - Throws: `ValidationError` if the duration is zero.
  package func checkAsLease() throws {
    guard duration > .zero else { throw ValidationError("--lease must be greater than zero") }
  }

  /// The duration in seconds, as the help shows a default.
  package var defaultValueDescription: String { "\(duration.components.seconds)s" }
}

/// A time to live on the command line: a number and a unit, such as `500ms`.
package struct TimeToLiveArgument: ExpressibleByArgument, Equatable {
  /// The time to live, which is greater than zero.
  package let duration: Duration

  /// Parses a time to live.
  ///
  /// - Parameter argument: Digits, followed by `ms`, `s`, `m`, `h` or `d`.
  package init?(argument: String) {
    guard let time = DurationArgument(argument: argument), time.duration > .zero else { return nil }
    duration = time.duration
  }
}

/// The time to live of the entries that a verb writes.
package struct TimeToLiveOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The time to live of the entry, such as 500ms, 2s, 5m, 1h or 7d. Defaults to no limit. A store created with it holds values that expire.",
      valueName: "time"))
  package var ttl: TimeToLiveArgument?

  /// The time to live of the entries; `nil` if the option is missing.
  package var timeToLive: TimeToLive? { ttl.map { .after($0.duration) } }

  package init() {}
}
