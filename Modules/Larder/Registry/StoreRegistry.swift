/// A registry of the kinds of store that a program can open by URL.
///
/// ```swift
/// let registry = StoreRegistry(providers: [MemoryStoreProvider(), JSONFileStoreProvider()])
/// let store = try await registry.open("json:users.json", codec: .json(User.self))
/// ```
public struct StoreRegistry: Sendable {
  private var providersByScheme: [String: any StoreProvider] = [:]

  /// Creates a registry.
  ///
  /// - Parameter providers: The providers. Of two providers with the same scheme, the later one is used. Defaults to
  ///   none.
  public init(providers: [any StoreProvider] = []) {
    for provider in providers {
      register(provider)
    }
  }

  /// Adds a provider, replacing any other with the same scheme.
  ///
  /// ```swift
  /// var registry = StoreRegistry()
  /// registry.register(JSONFileStoreProvider())
  /// registry.register(SQLiteStoreProvider())
  /// ```
  ///
  /// - Parameter provider: The provider.
  public mutating func register(_ provider: any StoreProvider) {
    providersByScheme[provider.scheme] = provider
  }

  /// The providers, sorted by scheme.
  public var providers: [any StoreProvider] {
    providersByScheme.values.sorted { $0.scheme < $1.scheme }
  }

  /// Opens a store by its URL as text.
  ///
  /// ```swift
  /// let users = try await registry.open(
  ///   "sqlite:users.sqlite", codec: .json(User.self), options: StoreOptions(createsIfMissing: false))
  /// ```
  ///
  /// - Parameters:
  ///   - url: The URL: the scheme, a colon, and the location.
  ///   - codec: The codec of the values.
  ///   - options: The options for opening the store. By default, a missing store is created and writes are synced.
  /// - Throws: ``StoreError`` with `invalidArgument` if the text is not a store URL; `unsupported` if no provider has
  ///   its scheme; other codes that opening the store throws.
  public func open<Value: Sendable>(
    _ url: String, codec: some Codec<Value>, options: StoreOptions = StoreOptions()
  ) async throws -> AnyDataStore<Value> {
    try await open(StoreURL(url), codec: codec, options: options)
  }

  /// Opens a store by its URL.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - codec: The codec of the values.
  ///   - options: The options for opening the store. By default, a missing store is created and writes are synced.
  /// - Throws: ``StoreError`` with `unsupported` if no provider has the scheme; other codes that opening the store
  ///   throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, codec: some Codec<Value>, options: StoreOptions = StoreOptions()
  ) async throws -> AnyDataStore<Value> {
    try await open(url, options: options, newCodecName: codec.name).typed(codec: codec)
  }

  /// Opens a store by its URL before the type of its values is chosen.
  ///
  /// You can then choose the type by the name of the codec that the store was written with; see ``UntypedStore``.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - options: The options for opening the store. By default, a missing store is created and writes are synced.
  ///   - newCodecName: The name of the codec that a new store records. Defaults to the usual codec of the kind of store.
  /// - Throws: ``StoreError`` with `unsupported` if no provider has the scheme; other codes that opening the store
  ///   throws.
  public func open(
    _ url: StoreURL, options: StoreOptions = StoreOptions(), newCodecName: String? = nil
  ) async throws -> any UntypedStore {
    try await provider(for: url).open(url, options: options, newCodecName: newCodecName)
  }

  private func provider(for url: StoreURL) throws -> any StoreProvider {
    if let provider = providersByScheme[url.scheme] { return provider }
    let known = providers.map { "\($0.scheme):" }.joined(separator: ", ")
    throw StoreError(
      .unsupported, during: .open, store: url.description,
      message: "no provider is registered for the scheme \(url.scheme):; "
        + "known schemes: \(known.isEmpty ? "none" : known)")
  }
}
