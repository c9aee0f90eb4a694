/// What it means that a write to a store has returned.
public enum Acknowledgement: Sendable, Hashable, CaseIterable {
  /// It survives the loss of power.
  case durable

  /// It survives the death of the process, and the loss of power once ``DataStore/synchronize()`` has returned.
  case buffered

  /// It was accepted and will be written later: it may be lost with the process.
  case accepted

  /// It is lost with the process: the store keeps nothing beyond it.
  case volatile

  /// What a store with a file and this durability promises.
  ///
  /// - Parameter durability: What the store does before a write returns.
  public init(_ durability: Durability) {
    switch durability {
    case .synced: self = .durable
    case .buffered: self = .buffered
    }
  }
}
