/// How a store is opened by URL.
public struct StoreOptions: Sendable, Hashable {
  /// Whether a store that is not there is created; otherwise opening it throws ``StoreError/Code/notFound``.
  public var createsIfMissing: Bool

  /// What the store does before a write returns.
  public var durability: Durability

  /// Makes options.
  ///
  /// - Parameters:
  ///   - createsIfMissing: Whether a store that is not there is created; `true` unless said.
  ///   - durability: What the store does before a write returns; ``Durability/synced`` unless said.
  public init(createsIfMissing: Bool = true, durability: Durability = .synced) {
    self.createsIfMissing = createsIfMissing
    self.durability = durability
  }
}
