/// A broken promise that a ``HistoryTrial`` has found, with all that is needed to see it again.
public struct HistoryTrialFailure: Error, CustomStringConvertible {
  /// The name of the store.
  public let store: String

  /// The steps that lead to it, as few as were found.
  public let history: [HistoryStep]

  /// What decided the history; `nil` where nothing was left to chance.
  public internal(set) var seed: UInt64?

  /// Which promise was broken, and how.
  public let message: String

  /// The failure for people to read.
  public var description: String {
    let seed = seed.map { "seed \($0), " } ?? ""
    let steps = history.map { "  \($0)," }.joined(separator: "\n")
    return "\(store): \(message)\n(\(seed)history:\n[\n\(steps)\n])"
  }
}
