import ArgumentParser
import Larder
import LarderMetrics

/// How long a verb waits for its stores, and whether it tells what it asked of them.
struct OpeningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How long to wait where another program has the store open, like 500ms or 1m; 0s for not at all.",
      valueName: "time"))
  var wait = DurationArgument(.seconds(5))
  @OptionGroup var metrics: MetricsOption

  /// What a verb needs to open a store.
  ///
  /// - Parameter url: The store.
  func target(_ url: String) -> StoreTarget {
    StoreTarget(url: url, patience: wait.duration, meter: metrics.meter(of: url))
  }
}

/// A store that a verb opens.
struct StoreTarget: Sendable {
  let url: String
  /// How long to wait where another program has it open.
  let patience: Duration
  /// What measures the store; `nil` where nobody wants to know.
  let meter: StoreMeter?
}
