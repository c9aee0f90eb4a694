/// Makes ``MemoryStore``s for ``StoreRegistry``, for URLs like `memory:`.
public struct MemoryStoreProvider: StoreProvider {
  /// Makes the provider.
  public init() {}

  /// `memory`.
  public var scheme: String { "memory" }

  /// What the stores are, in one line.
  public var summary: String { "in memory; empty at first and gone with the process" }

  /// Makes a new, empty store; what stands behind the scheme becomes its name.
  ///
  /// - Throws: ``StoreError`` with `notFound` where `options` does not allow a store to be created.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) throws -> AnyDataStore<Value> {
    guard options.createsIfMissing else {
      throw StoreError(
        .notFound, during: .open, store: url.description, message: "a store in memory does not outlive its process")
    }
    return AnyDataStore(MemoryStore<Value>(name: url.location.isEmpty ? scheme : url.location))
  }
}
