import ArgumentParser
import LarderMetrics

/// The store that a verb is about.
struct StoreArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The store, like json:users.json: a scheme, a colon and a place. No character needs an escape."))
  var url: String
  @OptionGroup var metrics: MetricsOption

  /// What measures the store; `nil` where nobody wants to know.
  var meter: StoreMeter? { metrics.meter(of: url) }
}
