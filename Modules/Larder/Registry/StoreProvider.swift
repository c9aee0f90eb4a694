/// Opens stores of one kind by URL; each module with stores has one and gives it to a ``StoreRegistry``.
public protocol StoreProvider: Sendable {
  /// The scheme of the URLs, in lower case, like `json`.
  var scheme: String { get }

  /// What the stores are, in one line, for a list that people read.
  var summary: String { get }

  /// The name of the codec that suits a new store where nobody has another in mind; `json` unless said.
  var defaultCodecName: String { get }

  /// The name of the codec that a store was written with.
  ///
  /// - Parameter url: Where the store is; its scheme is ``scheme``.
  /// - Returns: The name, or `nil` where there is no store, or it does not say; always `nil` unless said.
  /// - Throws: ``StoreError``: `notPermitted`; `ioFailed`; what finding out about a store of this kind throws.
  func codecName(of url: StoreURL) async throws -> String?

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

extension StoreProvider {
  /// `json`.
  public var defaultCodecName: String { "json" }

  /// Nothing, for stores that do not say.
  public func codecName(of url: StoreURL) async throws -> String? { nil }
}
