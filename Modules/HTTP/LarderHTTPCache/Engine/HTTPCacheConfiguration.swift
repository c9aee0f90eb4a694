#if HTTPCache
public import Foundation
public import HTTPCachingRules
public import HTTPTypes
public import Larder

/// The settings of an ``HTTPCache``.
///
/// ```swift
/// var configuration = HTTPCacheConfiguration.shared
/// configuration.capacity = 1_000_000_000
/// configuration.targetedFields = [.init("CDN-Cache-Control")!]
/// let cache = try await HTTPCache(store, configuration: configuration)
/// ```
public struct HTTPCacheConfiguration: Sendable {
  /// The decision of ``HTTPCacheConfiguration/willStore`` on a response.
  ///
  /// ```swift
  /// configuration.willStore = { request, _ in
  ///   request.path?.hasPrefix("/account/") == true ? .refuse : .store()
  /// }
  /// ```
  public enum StoringDecision: Sendable, Hashable {
    /// The response is stored, with data for your own use.
    ///
    /// The data has at most 65,536 bytes; with more, the response is not stored.
    case store(userData: [UInt8] = [])
    /// The response is not stored.
    case refuse
  }

  /// The configuration of a cache of one user, as a program has it.
  public static let `private` = HTTPCacheConfiguration(mode: .private)

  /// The configuration of a cache of many users, as a proxy has it.
  public static let shared = HTTPCacheConfiguration(mode: .shared)

  /// The kind of the cache.
  public var mode: HTTPCacheMode

  /// The maximum number of bytes in the store, including bodies that are being stored.
  ///
  /// Defaults to 100,000,000.
  ///
  /// A fifth of the capacity is a share for bodies that are being stored, or the length of ``largestBody`` if that is
  /// more. Complete responses have the rest, 80 % by default, and the least recently used ones are evicted
  /// first. A body of 1 MiB or more reserves its length in the share until it is complete. One that would exceed the
  /// share is passed on and not stored, so bodies which are never completed evict nothing.
  ///
  /// All programs that share a store must have the same capacity.
  public var capacity = 100_000_000

  /// The number of bytes of the largest body that is stored.
  ///
  /// Defaults to `nil`, for a twentieth of the capacity.
  ///
  /// A larger body is passed on, and evicts nothing. A body of more than half of the capacity is never stored.
  public var largestBody: Int?

  /// The fraction of the time since `Last-Modified` for which a response without explicit freshness stays fresh.
  ///
  /// Defaults to 0.1, and must be from 0 to 1. Such a response stays fresh for at most one day.
  public var heuristicFraction = 0.1

  /// The targeted fields of RFC 9213 that the cache obeys instead of `Cache-Control`, such as `CDN-Cache-Control`.
  ///
  /// Defaults to an empty list. If a response has several of them, the first one in this list counts.
  public var targetedFields: [HTTPField.Name] = []

  /// The responses with `Set-Cookie` that are stored.
  ///
  /// Defaults to `nil`, for `.ifPublic` in a shared cache and `.always` in a private one.
  ///
  /// Each client that is answered with a stored response receives its cookies. With `.ifPublic`, a response with `Set-Cookie` is
  /// stored only if it has `public` or `s-maxage`.
  public var setCookieStoring: SetCookieStoring?

  /// The name of the cache in `Cache-Status`, or `nil` to leave this field as it came.
  ///
  /// Defaults to `Larder`.
  ///
  /// It must be a token, such as `Larder` or `ExampleCache`.
  public var name: String? = "Larder"

  /// The way the query of a URL counts in the key of its responses.
  ///
  /// Defaults to the whole query. All programs that share a store must have the same value.
  public var queryKey = HTTPCacheQueryKey()

  /// A closure that returns the partition of a request.
  ///
  /// Defaults to one that returns an empty partition for all.
  ///
  /// A response is reused only within its partition. Use partitions for what changes a response but is not in its
  /// `Vary`, such as the account. The store contains the partition.
  public var partition: @Sendable (_ request: HTTPRequest) -> [UInt8] = { _ in [] }

  /// A closure that returns the identity of the user of a request.
  ///
  /// Defaults to one that returns an empty identity for all.
  ///
  /// A private cache can serve several users. It reuses the response to a request with an identity only for requests with
  /// the same identity, unless the response has `public`. Return a keyed hash of the credentials, such as HMAC-SHA256 of
  /// `Authorization`, because the store contains the identity. `CachedHTTPClient` of LarderHTTPClient does this.
  public var identity: @Sendable (_ request: HTTPRequest) -> [UInt8] = { _ in [] }

  /// A closure that decides whether a response is stored, like `willCacheResponse` of `URLSession`.
  ///
  /// Defaults to `nil`, for every response that may be stored.
  ///
  /// The cache calls it with the request and the head of the response before it stores the body. The closure cannot store
  /// what must not be stored.
  public var willStore: (@Sendable (_ request: HTTPRequest, _ response: HTTPResponse) -> StoringDecision)?

  /// The time that a request waits for the response to another one.
  ///
  /// Defaults to 10 seconds.
  ///
  /// If there is no response after it, one of the requests that wait is forwarded, and the others wait for its response.
  public var waitLimit: Duration = .seconds(10)

  /// The time after which an origin that has not answered counts as failing.
  ///
  /// Defaults to 10 seconds.
  ///
  /// A stale response then answers if it may answer for an origin that cannot be reached. The request to the origin
  /// continues, to find out if it works, unless another one does. Other requests wait for as long as your client does.
  public var originTimeLimit: Duration = .seconds(10)

  /// The time that no request waits for a URL whose response could not be shared, or was too large to be stored.
  ///
  /// Defaults to 10 seconds.
  public var coolDown: Duration = .seconds(10)

  /// The time that an operation of the store may take.
  ///
  /// Defaults to 5 seconds. Reading up to eight chunks of a body, 512 KiB, counts as one operation.
  ///
  /// After it, the cache continues as if the operation had failed, and does not use the store until the operation has
  /// returned or the time has passed again.
  public var storeTimeLimit: Duration = .seconds(5)

  /// The time that the store, or a slow reader, may make the readers of a body wait.
  ///
  /// Defaults to 1 second.
  ///
  /// While a body is stored, a reader waits only for a store that is slower than the origin. After this time, the body is no
  /// longer stored. If a body that is no longer stored has several readers, one that is more than 2 MiB behind and has made
  /// others wait for this time altogether fails with ``HTTPCacheError`` and `readerTooSlow`. A reader alone may pause for any
  /// time.
  public var stallLimit: Duration = .seconds(1)

  /// The time that the store keeps a body after it was replaced or evicted, for its readers in other processes.
  ///
  /// Defaults to one minute. Readers in this process always finish.
  public var retention: Duration = .seconds(60)

  /// The time between two sweeps of ``HTTPCache/run()``.
  ///
  /// Defaults to 15 seconds. With more than a minute, other processes may take a body that arrives slowly for an abandoned
  /// one.
  public var sweepInterval: Duration = .seconds(15)

  /// The prefix of all keys in the store.
  ///
  /// Defaults to `http/`.
  public var prefix: StoreKey = "http/"

  /// The clock that measures time limits.
  ///
  /// Defaults to a `ContinuousClock`.
  public var clock: any Clock<Duration> = ContinuousClock()

  /// A closure that returns the current time, to decide on freshness.
  ///
  /// Defaults to the system time.
  public var now: @Sendable () -> Date = { Date.now }

  #if Metrics
  /// The report to swift-metrics and to tracing, which needs the trait `Metrics`.
  ///
  /// Defaults to `nil`.
  public var metering: HTTPCacheMetering?
  #endif

  /// Creates the default configuration of a kind of cache.
  ///
  /// - Parameter mode: The kind of the cache.
  public init(mode: HTTPCacheMode) {
    self.mode = mode
  }

  func check() throws {
    func check(_ isValid: Bool, _ message: String) throws {
      if !isValid { throw HTTPCacheError(.invalidConfiguration, message) }
    }
    try check(capacity >= 1, "capacity must be at least 1, not \(capacity)")
    try check(largestBody ?? 0 >= 0, "largestBody must be at least 0, not \(largestBody ?? 0)")
    try check(
      heuristicFraction >= 0 && heuristicFraction <= 1,
      "heuristicFraction must be from 0 to 1, not \(heuristicFraction)")
    try check(queryKey.problem == nil, queryKey.problem ?? "")
    try check(
      name.map(isToken) ?? true,
      "name must be a token of letters, digits and hyphens that begins with a letter, such as ExampleCache")
    for (value, label) in [
      (waitLimit, "waitLimit"), (coolDown, "coolDown"), (retention, "retention"),
    ] {
      try check(value >= .zero, "\(label) must be at least zero, not \(value)")
    }
    for (value, label) in [
      (originTimeLimit, "originTimeLimit"), (storeTimeLimit, "storeTimeLimit"), (stallLimit, "stallLimit"),
      (sweepInterval, "sweepInterval"),
    ] {
      try check(value > .zero, "\(label) must be greater than zero, not \(value)")
    }
  }

  private func isToken(_ text: String) -> Bool {
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    return HTTPField.Name(text) != nil && text.utf8.first.map { letters ~= $0 | 0x20 } == true
  }
}

extension HTTPCacheRules {
  init(_ configuration: HTTPCacheConfiguration) {
    self.init(mode: configuration.mode)
    heuristicFraction = configuration.heuristicFraction
    targetedFields = configuration.targetedFields
    if let storing = configuration.setCookieStoring { setCookieStoring = storing }
    name = configuration.name
  }
}

extension StorageOptions {
  init(_ configuration: HTTPCacheConfiguration) {
    self.init(capacity: configuration.capacity, largestBody: configuration.largestBody)
    prefix = configuration.prefix
    retention = configuration.retention
    now = configuration.now
  }
}
#endif
