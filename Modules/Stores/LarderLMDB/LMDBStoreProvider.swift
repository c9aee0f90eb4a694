#if LMDB
public import Larder

/// Opens ``LMDBStore``s for ``StoreRegistry``, for URLs like `lmdb:users` and `lmdb:shop#orders`.
public struct LMDBStoreProvider: StoreProvider {
  /// Makes the provider.
  public init() {}

  /// `lmdb`.
  public var scheme: String { "lmdb" }

  /// What the stores are, in one line.
  public var summary: String { "a named database in an LMDB environment, PATH#NAME, by default the name \"default\"" }

  /// Opens the store that the location names: the path of the environment and, behind the last `#`, the name.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the path or the name is empty; what opening an ``LMDBStore`` throws;
  ///   what `codec` throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    let (path, name) = try LMDBStoreProvider.place(of: url)
    return AnyDataStore(
      try await LMDBStore(
        path: path, name: name, durability: options.durability, access: options.access,
        createsIfMissing: options.createsIfMissing, choosing: codec))
  }

  /// The path and the name that a URL stands for.
  private static func place(of url: StoreURL) throws -> (path: String, name: String) {
    // Looked for among the bytes: a number sign and a combining mark behind it are one character.
    let location = url.location
    let mark = location.utf8.lastIndex(of: UInt8(ascii: "#"))
    let path = mark.map { String(location[..<$0]) } ?? location
    let name = mark.map { String(location[location.utf8.index(after: $0)...]) } ?? LMDBStore<Never>.defaultName
    guard !path.isEmpty, !name.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message: "an LMDB store is a path or, behind it, a number sign and a name, like lmdb:shop#orders")
    }
    return (path, name)
  }
}
#endif
