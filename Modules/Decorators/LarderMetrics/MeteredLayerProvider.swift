#if Metrics
public import Larder

/// The provider of the layer `metered`, a ``MeteredStore`` in a configured stack.
///
/// The metrics have the name of the stack.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [MeteredLayerProvider()])
/// ```
public struct MeteredLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `metered`.
  public var name: String { "metered" }

  /// A one-line description of the layer.
  public var summary: String { "measures calls" }

  /// `true`.
  public var fitsQueues: Bool { true }

  /// The place of metrics, outside of all other layers.
  public var place: LayerPlace { .metrics }

  /// The setting `slow`.
  public var settings: [LayerSetting] {
    [LayerSetting("slow", .duration, "the duration from which a call is logged as slow; by default, 100ms")]
  }

  /// Opens a store whose calls are measured.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      AnyDataStore(
        store.metered(as: settings.stack, slowThreshold: settings.duration("slow") ?? .milliseconds(100)))
    }
    return layer(over: try await base.open(codec: codec).base)
  }
}
#endif
