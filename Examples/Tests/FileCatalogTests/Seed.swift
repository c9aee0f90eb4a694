import Foundation

/// The seed of random tests.
enum Seed {
  /// The seed in the environment variable `LARDER_SEED`, or a new one for each run.
  static let value: UInt64 =
    ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? .random(in: .min ... .max)
}
