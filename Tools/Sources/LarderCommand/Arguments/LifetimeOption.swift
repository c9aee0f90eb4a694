import ArgumentParser
import LarderExpiry

/// How long entries live that a verb writes.
struct LifetimeOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How long an entry lives, like 500ms, 2s, 5m, 1h or 7d; for ever unless given. A store made with it holds values that expire.",
      valueName: "time"))
  var ttl: LifetimeArgument?

  /// When an entry expires that is written now, or `nil` where that was not said.
  var expiration: Expiration? { ttl.map { .after($0.duration) } }
}
