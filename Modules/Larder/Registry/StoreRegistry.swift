/// The kinds of store that a program can open by URL.
///
/// ```swift
/// let registry = StoreRegistry(providers: [MemoryStoreProvider(), JSONFileStoreProvider()])
/// let store = try await registry.open("json:users.json", codec: .json(User.self))
/// ```
public struct StoreRegistry: Sendable {
  private var providersByScheme: [String: any StoreProvider] = [:]

  /// Makes a registry.
  ///
  /// - Parameter providers: The kinds of store; of two with the same scheme the later one counts.
  public init(providers: [any StoreProvider] = []) {
    for provider in providers {
      register(provider)
    }
  }

  /// Adds a kind of store, in place of any other with the same scheme.
  ///
  /// - Parameter provider: Opens the stores.
  public mutating func register(_ provider: any StoreProvider) {
    providersByScheme[provider.scheme] = provider
  }

  /// The kinds of store, by scheme.
  public var providers: [any StoreProvider] {
    providersByScheme.values.sorted { $0.scheme < $1.scheme }
  }

  /// Opens a store by the text of its URL.
  ///
  /// - Parameters:
  ///   - url: The scheme, a colon, and the place.
  ///   - codec: Turns values into bytes and back.
  ///   - options: How to open it; it is created where it is missing, and writes are synced, unless said.
  /// - Throws: ``StoreError``: `invalidArgument` where the text is no URL of a store; `unsupported` where no kind of
  ///   store has its scheme; what the store throws on opening.
  public func open<Value: Sendable>(
    _ url: String, codec: some Codec<Value>, options: StoreOptions = StoreOptions()
  ) async throws -> AnyDataStore<Value> {
    try await open(StoreURL(url), codec: codec, options: options)
  }

  /// Opens a store by its URL.
  ///
  /// - Parameters:
  ///   - url: The scheme and the place.
  ///   - codec: Turns values into bytes and back.
  ///   - options: How to open it; it is created where it is missing, and writes are synced, unless said.
  /// - Throws: ``StoreError``: `unsupported` where no kind of store has the scheme; what the store throws on opening.
  public func open<Value: Sendable>(
    _ url: StoreURL, codec: some Codec<Value>, options: StoreOptions = StoreOptions()
  ) async throws -> AnyDataStore<Value> {
    try await open(url, options: options) { _ in codec }
  }

  /// Opens a store by its URL, with a codec that is chosen by the name of the one that it was written with.
  ///
  /// ```swift
  /// let store = try await registry.open(url) { name in
  ///   name == "cbor" ? .cbor(User.self) : .json(User.self)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - url: The scheme and the place.
  ///   - options: How to open it; it is created where it is missing, and writes are synced, unless said.
  ///   - codec: Gives the codec for a name: that of the codec that the store was written with; where the store is new or
  ///     does not say, of the one that suits its kind. It is not called for a store without bytes.
  /// - Throws: ``StoreError``: `unsupported` where no kind of store has the scheme; `versionMismatch` where the codec has
  ///   another name than the store's; what the store throws on opening. What `codec` throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions = StoreOptions(),
    codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    try await provider(for: url).open(url, options: options, codec: codec)
  }

  private func provider(for url: StoreURL) throws -> any StoreProvider {
    if let provider = providersByScheme[url.scheme] { return provider }
    let known = providers.map { "\($0.scheme):" }.joined(separator: ", ")
    throw StoreError(
      .unsupported, during: .open, store: url.description,
      message: "no kind of store has the scheme \(url.scheme):, there is \(known.isEmpty ? "none" : known)")
  }
}
