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
  ///   - codec: Turns values into bytes and back. A store without bytes may do without it.
  ///   - options: How to open it.
  /// - Throws: ``StoreError``: `notFound` where the store is not there and `options` do not allow to create it; what
  ///   else opening a store of this kind throws.
  func open<Value: Sendable>(
    _ url: StoreURL, codec: any Codec<Value>, options: StoreOptions
  ) async throws -> AnyDataStore<Value>
}
