public import Larder

/// The provider of the layer `expiring`, an ``ExpiringStore`` in a configured stack, whose values are stored with their
/// deadlines.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [ExpiringLayerProvider()])
/// ```
public struct ExpiringLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `expiring`.
  public var name: String { "expiring" }

  /// A one-line description of the layer.
  public var summary: String { "ends entries at their deadlines" }

  /// The place of deadlines, outside of caches.
  public var place: LayerPlace { .expiry }

  /// The settings `after`, `sliding` and `purges`.
  public var settings: [LayerSetting] {
    [
      LayerSetting("after", .duration, "the time to live of an entry that is written without one"),
      LayerSetting("sliding", .duration, "the same, and each read begins it anew"),
      LayerSetting("purges", .flag, "whether writes remove some expired entries; by default, they do"),
    ]
  }

  /// Checks that there is one time to live.
  ///
  /// - Throws: `StoreError` with `invalidArgument`.
  public func check(_ settings: LayerSettings) throws {
    if settings.duration("after") != nil, settings.duration("sliding") != nil {
      throw settings.error("sliding", "contradicts \(settings.key("after")); set one of them")
    }
  }

  /// Opens a store whose entries have deadlines.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    let timeToLive: TimeToLive =
      if let time = settings.duration("sliding") {
        .sliding(time)
      } else if let time = settings.duration("after") {
        .after(time)
      } else {
        .never
      }
    func layer(over store: some DataStore<Expiring<Value>>) -> AnyDataStore<Value> {
      AnyDataStore(ExpiringStore(store, timeToLive: timeToLive, purgesOnWrite: settings.flag("purges") ?? true))
    }
    return layer(over: try await base.open(codec: codec.expiring()).base)
  }
}
