/// Opens stores of one kind by URL; each module with stores has one and gives it to a ``StoreRegistry``.
public protocol StoreProvider: Sendable {
  /// The scheme of the URLs, in lower case, like `json`.
  var scheme: String { get }

  /// What the stores are, in one line, for a list that people read.
  var summary: String { get }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - url: Where the store is; its scheme is ``scheme``.
  ///   - options: How to open it.
  ///   - codec: Gives the codec that turns values into bytes and back. It gets the name of the codec that the store was
  ///     written with; where the store is new or does not say, of the one that suits its kind. It is called once, or not
  ///     at all where the store has no bytes.
  /// - Throws: ``StoreError``: `notFound` where the store is not there and `options` do not allow to create it;
  ///   `versionMismatch` where the codec has another name than the store's; what else opening a store of this kind
  ///   throws. What `codec` throws.
  func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value>
}
