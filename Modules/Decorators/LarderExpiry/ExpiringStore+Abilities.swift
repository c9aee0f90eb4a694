public import Larder

extension ExpiringStore: InvalidatableStore where Base: InvalidatableStore {
  /// Lets the base forget its copy of one key; see `InvalidatableStore`.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Lets the base forget all copies; see `InvalidatableStore`.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}

extension ExpiringStore: FlushableStore where Base: FlushableStore {
  /// Writes pending renewals, and waits until everything accepted before has been written below the base; see
  /// `FlushableStore`.
  public func flush() async throws {
    await settleRenewals()
    try await base.flush()
  }
}
