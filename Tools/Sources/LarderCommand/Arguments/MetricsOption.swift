import ArgumentParser
import LarderMetrics

/// Whether a verb tells what it asked of its stores, and how long that took.
struct MetricsOption: ParsableArguments {
  @Flag(
    name: .customLong("metrics"),
    help: "Tell on standard error what was asked of the store, how often, and how long it took.")
  var isWanted = false

  /// What measures a store; `nil` where nobody wants to know.
  ///
  /// - Parameter url: The store.
  func meter(of url: String) -> StoreMeter? {
    isWanted ? StoreMeter(name: url, logger: nil) : nil
  }
}
