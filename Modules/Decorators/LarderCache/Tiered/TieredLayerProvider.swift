public import Larder

/// The provider of the layer `tiered`, a ``TieredStore`` in a configured stack, whose copies are in another stack.
///
/// The other stack has layers of its own, such as a limit. Its values are bytes, and it records the codec `raw`. The keys of
/// the copies begin with the name of the stack and a slash.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [LMDBStoreProvider(), PostgresStoreProvider()],
///   layers: [TieredLayerProvider(), BoundedLayerProvider()])
/// ```
///
/// Closing the stack closes both stores.
public struct TieredLayerProvider: LayerProvider {
  private let onCacheFailure: @Sendable (_ stack: String, _ error: any Error) -> Void

  /// Creates a provider.
  ///
  /// - Parameter onCacheFailure: A closure that receives the name of the stack and each error of reading or writing copies
  ///   that no caller receives. The stack reads and writes its store nevertheless. Defaults to a closure that does nothing.
  public init(onCacheFailure: @escaping @Sendable (_ stack: String, _ error: any Error) -> Void = { _, _ in }) {
    self.onCacheFailure = onCacheFailure
  }

  /// The name `tiered`.
  public var name: String { "tiered" }

  /// A one-line description of the layer.
  public var summary: String { "keeps copies in a faster store, which outlive the process" }

  /// The place of copies in another store, below those in memory.
  public var place: LayerPlace { .tier }

  /// The settings `cache` (required), `ttl`, `refresh`, `missing` and `plain`.
  public var settings: [LayerSetting] {
    [
      LayerSetting(
        "cache", .stack, "the name of the stack that has the copies",
        required: "set the name of another stack, which keeps the copies"),
      LayerSetting("ttl", .duration, "the time after which a value is loaded again"),
      LayerSetting("refresh", .duration, "the age from which a value is loaded again while it is still served"),
      LayerSetting("missing", .duration, "the time for which it is remembered that a key has no value"),
      LayerSetting(
        "plain", .flag, "whether copies of encrypted values may be stored in plain form; by default, they may not"),
    ]
  }

  /// Checks that copies are refreshed before they must be loaded again.
  ///
  /// - Throws: `StoreError` with `invalidArgument`.
  public func check(_ settings: LayerSettings) throws { try settings.checkRefresh() }

  /// Opens a store with copies in another stack.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if `ttl` is not set, and others can change the store or it can lose
  ///   writes; the errors of opening `base`, of opening the other stack and of creating a ``TieredStore``.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    var configuration = TieredStoreConfiguration(
      timeToLive: settings.duration("ttl"), refreshAfter: settings.duration("refresh"),
      negativeTimeToLive: settings.duration("missing"))
    configuration.allowsPlainCopies = settings.flag("plain") ?? false
    // The name of a stack has no slash, so no prefix begins with another one.
    configuration.keyPrefix = StoreKey("\(settings.stack)/")
    configuration.onCacheFailure = { [onCacheFailure, stack = settings.stack] in onCacheFailure(stack, $0) }
    func layer(
      over store: some DataStore<Value>, in cache: some DataStore<[UInt8]>, _ configuration: TieredStoreConfiguration
    ) throws -> AnyDataStore<Value> {
      do {
        return AnyDataStore(try store.cached(in: cache, codec: codec, configuration: configuration))
      } catch let error as StoreError {
        throw settings.misfit(error)
      }
    }
    let other = try settings.store("cache")
    return try await base.open(codec: codec) { [configuration] store in
      let isCertain = store.information.sharing == .exclusive && store.information.durability == .synced
      guard isCertain || settings.duration("ttl") != nil else {
        throw settings.error(
          "ttl",
          "is required, because others can change the store, or it can lose writes; set the time after which a "
            + "copy is loaded again, such as 1h")
      }
      return try await other.open(codec: .raw) { try layer(over: store.base, in: $0.base, configuration) }
    }
  }
}
