public import Larder

/// The provider of the layer `observable`, an ``ObservingStore`` in a configured stack.
///
/// Over a store that reports its changes itself, such as an `LMDBStore`, it passes these reports on.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [JSONFileStoreProvider()], layers: [ObservableLayerProvider()])
/// ```
public struct ObservableLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `observable`.
  public var name: String { "observable" }

  /// A one-line description of the layer.
  public var summary: String { "reports the changes of a store that one process uses" }

  /// The place of observation, next to the store.
  public var place: LayerPlace { .observation }

  /// An empty list.
  public var settings: [LayerSetting] { [] }

  /// The layer `mirrored`, which does not pass reports on.
  public var contradictions: [String] { ["mirrored"] }

  /// Opens a store that reports its changes.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      AnyDataStore(store.observable())
    }
    return layer(over: try await base.open(codec: codec).base)
  }
}
