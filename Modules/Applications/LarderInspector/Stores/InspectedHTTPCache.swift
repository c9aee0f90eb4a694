#if Inspector
public import Larder
public import LarderHTTPCache

extension InspectedStore {
  /// Creates an inspected store of bytes in which an HTTP cache of this program keeps its responses.
  ///
  /// Beside the pages of the store, there are pages that list the stored responses, say why a URL is or is not answered from
  /// them, show the statistics of the cache, and remove responses.
  ///
  /// ```swift
  /// let cache = try await HTTPCache(responses, configuration: .shared)
  /// let inspected = try InspectedStore("responses", responses, httpCache: cache)
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name in the list of stores.
  ///   - store: The store of the cache.
  ///   - cache: The cache.
  /// - Throws: `HTTPCacheError` or `StoreError` if the settings of the cache don't fit the store.
  public init(_ name: String, _ store: some DataStore<[UInt8]>, httpCache cache: HTTPCache) throws {
    try self.init(name, store, httpCacheConfiguration: cache.configuration)
    httpCache?.cache = cache
  }

  /// Creates an inspected store of bytes in which an HTTP cache of another program keeps its responses.
  ///
  /// ```swift
  /// let inspected = try InspectedStore("responses", responses, httpCacheConfiguration: .shared)
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name in the list of stores.
  ///   - store: The store of the cache.
  ///   - configuration: The settings of the cache: its prefix, its mode, its query key and its heuristics. The inspector never
  ///     evicts a response, so it ignores the capacity.
  /// - Throws: `HTTPCacheError` or `StoreError` if the settings don't fit the store.
  public init(
    _ name: String, _ store: some DataStore<[UInt8]>, httpCacheConfiguration configuration: HTTPCacheConfiguration
  ) throws {
    self.init(name, store)
    let store = AnyDataStore(store)
    httpCache = InspectedHTTPCache(
      inspector: try HTTPCacheInspector(store, configuration: configuration), store: store, configuration: configuration
    )
  }
}

/// An HTTP cache as the pages use it.
struct InspectedHTTPCache: Sendable {
  let inspector: HTTPCacheInspector
  let store: AnyDataStore<[UInt8]>
  let configuration: HTTPCacheConfiguration
  /// The cache, if it is one of this program.
  var cache: HTTPCache?

  /// Removes responses, in all programs that use the cache.
  func remove(_ responses: RemovedResponses) async throws {
    let cache = try await openedCache()
    switch responses {
    case .url(let url): try await cache.invalidate(url)
    case .prefix(let prefix): try await cache.invalidate(prefix: prefix)
    case .all: try await cache.removeAll()
    }
  }

  private func openedCache() async throws -> HTTPCache {
    if let cache { return cache }
    var configuration = configuration
    // It must neither evict responses nor remove bodies that the program of the cache still keeps for its readers.
    configuration.capacity = .max
    configuration.retention = .seconds(100 * 365 * 86_400)
    return try await HTTPCache(store, configuration: configuration)
  }
}

/// The stored responses that a change removes.
enum RemovedResponses: Sendable, Hashable {
  case url(String)
  /// The responses for URLs that begin with a text.
  case prefix(String)
  case all

  /// The responses as the object of a sentence.
  var text: HTML {
    switch self {
    case .url(let url): "the stored responses for <b>\(url)</b>"
    case .prefix(let prefix): "the stored responses for all URLs that begin with <b>\(prefix)</b>"
    case .all: "all stored responses"
    }
  }
}
#endif
