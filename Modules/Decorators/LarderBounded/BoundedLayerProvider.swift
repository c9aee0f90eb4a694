public import Larder

/// The provider of the layer `bounded`, a ``BoundedStore`` in a configured stack.
///
/// The store below has bytes, and records the codec `raw`.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [BoundedLayerProvider()])
/// ```
public struct BoundedLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `bounded`.
  public var name: String { "bounded" }

  /// A one-line description of the layer.
  public var summary: String { "removes the least recently used entries above a limit" }

  /// The place of limits, next to the store.
  public var place: LayerPlace { .limit }

  /// The settings `bytes` (required) and `entries`.
  public var settings: [LayerSetting] {
    [
      LayerSetting(
        "bytes", .bytes, "the most bytes of keys and values", required: "set the most bytes, such as 500MB"),
      LayerSetting("entries", .count(1...Int.max), "the most entries"),
    ]
  }

  /// Opens a store that has a limit.
  ///
  /// - Throws: The errors of opening `base` and of opening a ``BoundedStore``.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<[UInt8]>) async throws -> AnyDataStore<Value> {
      let bounded = try await store.bounded(
        bytes: settings.byteCount("bytes") ?? .max, entries: settings.count("entries"))
      return AnyDataStore(bounded.typed(Value.self, codec: codec))
    }
    return try await base.open(codec: .raw) { try await layer(over: $0.base) }
  }
}
