/// A broken promise that a ``ConcurrencyTrial`` has found.
public struct ConcurrencyTrialFailure: Error, CustomStringConvertible {
  /// The name of the store.
  public let store: String

  /// What decided the steps; which of them ran at the same time is left to the system.
  public let seed: UInt64

  /// Which promise was broken, and how.
  public let message: String

  /// What cannot be explained, as short as possible; `nil` where an operation failed.
  public let violation: ConcurrentHistory?

  /// The failure for people to read.
  public var description: String {
    let lines = violation.map { "\n\($0)" } ?? ""
    return "\(store): \(message) (seed \(seed))\(lines)"
  }
}
