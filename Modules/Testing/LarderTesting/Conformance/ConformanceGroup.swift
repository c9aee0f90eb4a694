/// What a case of the conformance suite is about.
public enum ConformanceGroup: String, Sendable, Hashable, CaseIterable {
  /// Reading, writing and removing single keys.
  case points
  /// What is a key, and which keys are the same.
  case keys
  /// What can be stored.
  case values
  /// Reading several keys at once.
  case multiGet
  /// Several changes at once.
  case batches
  /// Reading and writing as one step.
  case updates
  /// Going through ranges.
  case scans
  /// Going through ranges page by page.
  case pages
  /// Removing ranges.
  case clear
  /// Closing.
  case lifecycle
  /// Opening what was closed, left open, or is open in another process.
  case reopening
  /// Entries that cannot be decoded, and files that were altered.
  case damage
  /// What errors say.
  case errors
  /// Tasks that were cancelled.
  case cancellation
  /// Many tasks at once.
  case concurrency
  /// Random and exhaustive histories, compared with a model.
  case histories
}

extension ConformanceGroup: CustomStringConvertible {
  /// The name.
  public var description: String { rawValue }
}
