public import Larder

/// Opens ``JSONFileStore``s for ``StoreRegistry``, for URLs like `json:users.json`.
public struct JSONFileStoreProvider: StoreProvider {
  /// Makes the provider.
  public init() {}

  /// `json`.
  public var scheme: String { "json" }

  /// What the stores are, in one line.
  public var summary: String { "one readable JSON document at a path" }

  /// Opens the store whose document is at the path behind the scheme.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the path is empty; what opening a ``JSONFileStore`` throws;
  ///   what `codec` throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    guard !url.location.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description, message: "the path of the document is missing")
    }
    return AnyDataStore(
      try await JSONFileStore(
        path: url.location, durability: options.durability, access: options.access,
        createsIfMissing: options.createsIfMissing, choosing: codec))
  }
}
