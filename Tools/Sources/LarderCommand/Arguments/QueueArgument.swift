import ArgumentParser
import LarderMetrics

/// The queue that a verb is about, and how long the verb waits for it.
struct QueueArgument: ParsableArguments {
  @Argument(help: "The queue, like queue:outbox: the scheme, a colon and the path of its folder.")
  var url: String
  @Option(
    help: ArgumentHelp(
      "How long to wait where another program has the queue open, like 500ms or 5s.", valueName: "time"))
  var wait = DurationArgument(.seconds(5))
  @OptionGroup var metrics: MetricsOption

  /// What measures the queue; `nil` where nobody wants to know.
  var meter: StoreMeter? { metrics.meter(of: url) }
}
