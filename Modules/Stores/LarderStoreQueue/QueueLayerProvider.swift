public import Larder

/// The provider of the layer `queue`, a ``StoreQueue`` in a configured stack.
///
/// The store below has bytes, and records the codec `raw`. The items have the codec of the stack.
public struct QueueLayerProvider: LayerProvider {
  private let configuration: StoreQueueConfiguration

  /// Creates a provider.
  ///
  /// - Parameter configuration: The configuration of the queues. Defaults to the usual one.
  public init(configuration: StoreQueueConfiguration = StoreQueueConfiguration()) {
    self.configuration = configuration
  }

  /// The name `queue`.
  public var name: String { "queue" }

  /// A one-line description of the layer.
  public var summary: String { "a queue in the store, below a prefix" }

  /// The place of queues, outside of all other layers.
  public var place: LayerPlace { .queue }

  /// The setting `prefix` (required).
  public var settings: [LayerSetting] {
    [
      LayerSetting(
        "prefix", .text, "the prefix of the keys of the queue in the store",
        required: "set the beginning of the keys of the queue, such as jobs/")
    ]
  }

  /// The layers that could lose items: `expiring`, `bounded` and `writeBehind`.
  public var contradictions: [String] { ["expiring", "bounded", "writeBehind"] }

  /// Opens a queue in a store.
  ///
  /// - Throws: The errors of opening `base` and of creating a ``StoreQueue``.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<[UInt8]>) async throws -> AnyDataStore<Value> {
      AnyDataStore(
        try await StoreQueue(
          store, prefix: StoreKey(settings.text("prefix") ?? ""), codec: codec, configuration: configuration))
    }
    return try await base.open(codec: .raw) { try await layer(over: $0.base) }
  }
}
