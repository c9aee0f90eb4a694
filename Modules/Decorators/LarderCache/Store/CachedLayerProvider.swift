public import Larder

/// The provider of the layer `cached`, a ``CachedStore`` in a configured stack.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [CachedLayerProvider()])
/// ```
public struct CachedLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `cached`.
  public var name: String { "cached" }

  /// A one-line description of the layer.
  public var summary: String { "keeps frequently used values in memory" }

  /// The place of caches.
  public var place: LayerPlace { .cache }

  /// The settings `entries` (required), `ttl`, `refresh` and `missing`.
  public var settings: [LayerSetting] {
    [
      LayerSetting(
        "entries", .count(1...Int.max), "the most entries in memory",
        required: "set the most entries, such as 10000, or the cache could use all memory"),
      LayerSetting("ttl", .duration, "the time after which a value is loaded again"),
      LayerSetting("refresh", .duration, "the age from which a value is loaded again while it is still served"),
      LayerSetting("missing", .duration, "the time for which it is remembered that a key has no value"),
    ]
  }

  /// Checks that values are refreshed before they must be loaded again.
  ///
  /// - Throws: `StoreError` with `invalidArgument`.
  public func check(_ settings: LayerSettings) throws { try settings.checkRefresh() }

  /// Opens a store with a cache in front of it.
  ///
  /// - Throws: `StoreError` with `unsupported` if others may write to the store and it does not report their commits, and
  ///   `ttl` is not set; the errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    let timeToLive = settings.duration("ttl").map { CacheTimeToLive.afterWrite($0) }
    let configuration = CachedStoreConfiguration<Value>(
      entryLimit: settings.count("entries"), timeToLive: timeToLive, refreshAfter: settings.duration("refresh"),
      negativeTimeToLive: settings.duration("missing"))
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      AnyDataStore(store.cached(configuration))
    }
    return try await base.open(codec: codec) { store in
      let seesAllCommits = store.information.sharing == .exclusive || store.information.reportsAllCommits
      guard seesAllCommits || timeToLive != nil else {
        throw StoreError(
          .unsupported, during: .open, store: settings.stack,
          message: "\(settings.layerKey) would serve old values without a limit, because the store does not report the "
            + "commits of others; set \(settings.key("ttl"))")
      }
      return layer(over: store.base)
    }
  }
}

extension LayerSettings {
  /// Checks that `refresh` is less than `ttl`.
  func checkRefresh() throws {
    if let refresh = duration("refresh"), let timeToLive = duration("ttl"), refresh >= timeToLive {
      throw error("refresh", "must be less than \(key("ttl")), or no value is ever refreshed")
    }
  }
}
