#if Compression
public import Larder

/// Opens ``CompressedFileStore``s for ``StoreRegistry``, for URLs like `compressed:users.gz`.
public struct CompressedFileStoreProvider: StoreProvider {
  /// Makes the provider.
  public init() {}

  /// `compressed`.
  public var scheme: String { "compressed" }

  /// What the stores are, in one line.
  public var summary: String { "one compressed file at a path, which zcat reads" }

  /// Opens the store whose file is at the path behind the scheme.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the path is empty; what opening a ``CompressedFileStore``
  ///   throws; what `codec` throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    guard !url.location.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description, message: "the path of the file is missing")
    }
    return AnyDataStore(
      try await CompressedFileStore(
        path: url.location, durability: options.durability, access: options.access,
        createsIfMissing: options.createsIfMissing, choosing: codec))
  }
}
#endif
