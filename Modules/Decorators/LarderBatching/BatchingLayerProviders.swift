public import Larder

/// The provider of the layer `batched`, a ``BatchingStore`` in a configured stack.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [BatchedLayerProvider()])
/// ```
public struct BatchedLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `batched`.
  public var name: String { "batched" }

  /// A one-line description of the layer.
  public var summary: String { "writers that write at the same time share commits" }

  /// The place of batching.
  public var place: LayerPlace { .batching }

  /// The setting `changes`.
  public var settings: [LayerSetting] {
    [LayerSetting("changes", .count(1...Int.max), "the most changes in one commit; by default, 10000")]
  }

  /// Opens a store whose writers share commits.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      AnyDataStore(store.batched(bounds: settings.batchBounds()))
    }
    return layer(over: try await base.open(codec: codec).base)
  }
}

/// The provider of the layer `writeBehind`, a ``WriteBehindStore`` in a configured stack.
///
/// Writes that were accepted, but not yet written, are lost if the process dies.
public struct WriteBehindLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `writeBehind`.
  public var name: String { "writeBehind" }

  /// A one-line description of the layer.
  public var summary: String { "writes later; what is not yet written is lost if the process dies" }

  /// The place of batching.
  public var place: LayerPlace { .batching }

  /// The settings `age` and `changes`.
  public var settings: [LayerSetting] {
    [
      LayerSetting("age", .duration, "the longest time until a change is written; by default, 100ms"),
      LayerSetting("changes", .count(1...Int.max), "the most changes that wait; by default, 10000"),
    ]
  }

  /// Opens a store that is written later.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      AnyDataStore(
        store.writeBehind(
          bounds: settings.batchBounds(), maximumAge: settings.duration("age") ?? .milliseconds(100)))
    }
    return layer(over: try await base.open(codec: codec).base)
  }
}

extension LayerSettings {
  fileprivate func batchBounds<Value>() -> BatchBounds<Value> {
    count("changes").map { BatchBounds(changes: $0) } ?? BatchBounds()
  }
}
