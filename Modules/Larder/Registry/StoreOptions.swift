/// How a store is opened by URL.
public struct StoreOptions: Sendable, Hashable {
  /// Whether a store that is not there is created; otherwise opening it throws ``StoreError/Code/notFound``.
  public var createsIfMissing: Bool

  /// What the store does before a write returns.
  public var durability: Durability

  /// Whether the store may write.
  ///
  /// With any other access than ``StoreAccess/readWrite`` nothing is created.
  public var access: StoreAccess

  /// Makes options.
  ///
  /// - Parameters:
  ///   - createsIfMissing: Whether a store that is not there is created; `true` unless said.
  ///   - durability: What the store does before a write returns; ``Durability/synced`` unless said.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  public init(createsIfMissing: Bool = true, durability: Durability = .synced, access: StoreAccess = .readWrite) {
    self.createsIfMissing = createsIfMissing
    self.durability = durability
    self.access = access
  }
}
