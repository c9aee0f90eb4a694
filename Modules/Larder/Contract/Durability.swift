/// The promise of a store for a write that has returned.
public enum Durability: Sendable, Hashable, CaseIterable {
  /// The write survives a power failure.
  case synced

  /// The write survives the death of the process. It survives a power failure once ``DataStore/synchronize()`` has
  /// returned.
  case buffered

  /// The write was accepted and is made later. It can be lost if the process dies.
  case accepted

  /// The write is lost when the process ends, because the store keeps its entries in memory only.
  case volatile

  /// Creates the durability of a store that owns a file.
  ///
  /// - Parameter durability: What the store does before a write returns.
  public init(_ durability: Durability.File) {
    switch durability {
    case .synced: self = .synced
    case .buffered: self = .buffered
    }
  }
}

extension Durability {
  /// The durabilities that you can choose for a store that owns a file.
  ///
  /// ```swift
  /// let cache = try await LMDBStore<User>(path: folder + "/cache", durability: .buffered)
  /// ```
  public enum File: Sendable, Hashable, CaseIterable {
    /// A write returns after it has reached the disk, so it survives a power failure. The default.
    case synced

    /// A write returns after it has reached the operating system, so it survives the death of the process.
    ///
    /// A power failure can take the latest writes, back to the last ``DataStore/synchronize()``, but never corrupts the
    /// store.
    case buffered
  }
}
