#if HTTPCache
public import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder
public import LarderHTTPCache

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A `URLSession` with an HTTP cache in place of a `URLCache`.
///
/// ```swift
/// let store = try await SQLiteStore(path: folder + "/http.db", codec: .raw)
/// let cache = try await HTTPCache(store, configuration: .private)
/// let session = CachedURLSession(cache: cache)
/// let (data, response) = try await session.data(from: url)
/// ```
///
/// A request is answered from the store if RFC 9111 allows that, and sent by a `URLSession` of its own otherwise. The field
/// `Cache-Status` of a response says how it was answered; the property `cacheStatus` of `HTTPURLResponse` reads it.
///
/// The cache sees each request as the server receives it, and each response as the server sent it. The session inside
/// therefore follows no redirects, and adds only `User-Agent` and `Accept`. This type does both above the cache: it
/// follows redirects, and adds the `httpAdditionalHeaders` of the configuration, cookies and `Accept-Language`.
///
/// ## Encoded bodies
///
/// A `URLSession` decodes bodies and leaves the head as it came, so the head does not describe the body. A request
/// without `Accept-Encoding` therefore gets `identity`. A response that has a `Content-Encoding` nevertheless is passed
/// on as the session delivers it, and is not stored.
///
/// ## Users
///
/// In a private cache, the response to a request with `Authorization` is reused only for the same value of that field and
/// by the same session, unless the response has `public`. Cookies do not separate users: pass a partition if a program makes
/// requests for several users whose responses depend on cookies. The session inside does not use stored passwords.
///
/// ## Concurrency
///
/// All methods can be called from any task.
public final class CachedURLSession: Sendable {
  private let session: URLSession
  private let delegate = SessionDelegate()
  private let cache: HTTPCache
  private let redirectLimit: Int
  private let unreadLimit: Int
  private let identities = Identities()
  private let defaults: RequestDefaults

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the `URLSession`. Defaults to the default one. Its cache and its cache
  ///     policy are not used.
  ///   - cache: The cache. It can be used by others too.
  ///   - redirectLimit: The largest number of redirects that a request follows. Defaults to 20, and 0 means that
  ///     redirects are returned like other responses.
  ///   - unreadLimit: The number of bytes of a body that may wait in memory for their reader. Defaults to 16 MiB. On
  ///     Apple's systems, the server then has to wait. On other systems, `URLSession` cannot pause, and the body fails
  ///     with ``CachedURLSessionError/Code/unreadBodyTooLarge``.
  public init(
    configuration: URLSessionConfiguration = .default, cache: HTTPCache, redirectLimit: Int = 20,
    unreadLimit: Int = 16 << 20
  ) {
    defaults = RequestDefaults(configuration)
    session = URLSession(
      configuration: RequestDefaults.forwarding(configuration), delegate: delegate, delegateQueue: nil)
    self.cache = cache
    self.redirectLimit = redirectLimit
    self.unreadLimit = unreadLimit
  }

  deinit {
    finishTasksAndInvalidate()
  }

  /// Releases the session after the running requests have finished.
  ///
  /// Later requests that need the server fail with ``CachedURLSessionError/Code/invalidated``. Releasing the last reference
  /// does the same.
  public func finishTasksAndInvalidate() {
    if delegate.invalidate() { session.finishTasksAndInvalidate() }
  }

  /// Cancels the running requests, and releases the session.
  ///
  /// Later requests that need the server fail with ``CachedURLSessionError/Code/invalidated``.
  public func invalidateAndCancel() {
    if delegate.invalidate() { session.invalidateAndCancel() }
  }

  // MARK: Requests

  /// Returns the response to a request with its whole body, from the store or from the server.
  ///
  /// ```swift
  /// let (data, response) = try await session.data(for: request, policy: .preferCache, upTo: 1_000_000)
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request. Its cache policy is not used.
  ///   - policy: The policy of the cache. Defaults to `standard`.
  ///   - partition: The partition of the cache. Defaults to `nil`, for the one of the cache's configuration.
  ///   - limit: The largest number of bytes of the body. Defaults to 100,000,000.
  /// - Returns: The body and the head.
  /// - Throws: The errors of ``chunks(for:policy:partition:)``; `HTTPCacheError` with `bodyTooLarge`.
  public func data(
    for request: URLRequest, policy: HTTPCachePolicy = .standard, partition: [UInt8]? = nil,
    upTo limit: Int = 100_000_000
  ) async throws -> (Data, HTTPURLResponse) {
    let (body, response) = try await chunks(for: request, policy: policy, partition: partition)
    return (Data(try await body.bytes(upTo: limit)), response)
  }

  /// Returns the response to a `GET` with its whole body, from the store or from the server.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The body and the head.
  /// - Throws: The errors of ``data(for:policy:partition:upTo:)``.
  public func data(from url: URL) async throws -> (Data, HTTPURLResponse) {
    try await data(for: URLRequest(url: url))
  }

  /// Returns the response to a request, whose body is read in chunks while it arrives.
  ///
  /// ```swift
  /// let (body, response) = try await session.chunks(for: request)
  /// for try await bytes in body { consume(bytes) }
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request. Its cache policy is not used. A body in `httpBodyStream` can be sent once, so a redirect that
  ///     needs it again is the response.
  ///   - policy: The policy of the cache. Defaults to `standard`.
  ///   - partition: The partition of the cache. Defaults to `nil`, for the one of the cache's configuration.
  /// - Returns: The body, which can be iterated once, and the head.
  /// - Throws: `URLError` with `unsupportedURL` if the URL is not one of HTTP, with `httpTooManyRedirects`, or that of the
  ///   session if no stored response may be used in place of the server's; ``CachedURLSessionError``; `HTTPCacheError` with
  ///   `invalidURL`; `CancellationError`.
  public func chunks(
    for request: URLRequest, policy: HTTPCachePolicy = .standard, partition: [UInt8]? = nil
  ) async throws -> (HTTPCacheBody, HTTPURLResponse) {
    var request = request
    var target = try HTTPRequest(request)
    let origin = try? RequestURL(of: target).origin
    var redirectCount = 0
    while true {
      let sent = defaults.added(to: request, isRedirected: (try? RequestURL(of: target).origin) != origin)
      let head = try HTTPRequest(sent)
      let answer = try await cache.response(
        to: head, policy: policy, partition: partition, identity: identity(of: head),
        waitLimit: sent.waitLimit
      ) { [delegate, session, unreadLimit] forwarded in
        let transfer = try delegate.transfer(
          URLRequest(forwarded, as: sent), by: session, unreadLimit: unreadLimit)
        return HTTPForwardedResponse(try await transfer.head(), TransferBody(transfer))
      }
      guard let url = sent.url, let response = HTTPURLResponse(answer.head, url: url) else {
        throw CachedURLSessionError.notHTTP
      }
      // The fields that were added to the request are for its URL only.
      guard redirectLimit > 0, let redirect = HTTPRedirect(from: target, by: answer.head),
        let next = request.following(redirect)
      else { return (answer.body, response) }
      guard redirectCount < redirectLimit else { throw URLError(.httpTooManyRedirects) }
      redirectCount += 1
      if answer.cacheStatus.isStored { try await answer.body.discard(within: sent.waitLimit) }
      (request, target) = (next, redirect.request)
    }
  }

  /// Returns the identity of the cache's configuration, with one for the credentials if the cache is private.
  private func identity(of head: HTTPRequest) -> [UInt8] {
    let identity = cache.configuration.identity(head)
    guard cache.configuration.mode == .private, let credentials = head.headerFields[.authorization] else {
      return identity
    }
    return identity + identities.identity(of: credentials)
  }
}

/// The identities of the users of a session, by their credentials.
///
/// Each is random, so the store contains nothing about the credentials.
private final class Identities: Sendable {
  /// The number of identities that are remembered.
  ///
  /// With more, the responses of all users are requested again.
  private static let limit = 1000

  private let identities = Locked<[String: UUID]>([:])

  func identity(of credentials: String) -> [UInt8] {
    let new = UUID()
    let (identity, removed) = identities.withLock { identities -> (UUID, [String: UUID]) in
      if let identity = identities[credentials] { return (identity, [:]) }
      let removed = identities.count >= Self.limit ? identities : [:]
      if !removed.isEmpty { identities = [:] }
      identities[credentials] = new
      return (new, removed)
    }
    withExtendedLifetime(removed) {}
    return withUnsafeBytes(of: identity.uuid) { Array($0) }
  }
}

extension HTTPURLResponse {
  /// The way a cache answered, read from `Cache-Status`.
  ///
  /// `nil` if the response does not have the field, or a cache of another program wrote it in another form. A
  /// ``CachedURLSession`` adds the field unless the cache's configuration has no name; the status is then the one of a cache on
  /// the way, if there is one.
  public var cacheStatus: CacheStatus? {
    value(forHTTPHeaderField: "Cache-Status").flatMap { CacheStatus(fieldValue: $0) }
  }
}
#endif
