/// A broken promise that a ``DiskTrial`` has found, with all that is needed to see it again.
public struct DiskTrialFailure: Error, CustomStringConvertible {
  /// The name of the store.
  public let store: String

  /// The steps that lead to it, as few as were found.
  public let history: [HistoryStep]

  /// What decided what the disk kept.
  public let seed: UInt64

  /// What went wrong, and at which operation; `nil` where nothing did.
  public let fault: (fault: SimulatedFault, operation: Int)?

  /// Which promise was broken, and how.
  public let message: String

  /// The failure for people to read.
  public var description: String {
    let fault = fault.map { ", \($0.fault) at operation \($0.operation)" } ?? ""
    let steps = history.map { "  \($0)," }.joined(separator: "\n")
    return "\(store): \(message)\n(seed \(seed)\(fault), history:\n[\n\(steps)\n])"
  }
}
