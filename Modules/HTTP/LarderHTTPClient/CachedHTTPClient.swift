#if HTTPClient
public import AsyncHTTPClient
import Crypto
import HTTPCachingRules
import HTTPTypes
public import LarderHTTPCache
public import Logging
public import NIOCore
import NIOHTTP1

/// An `HTTPClient` with a cache.
///
/// ```swift
/// let store = try await LMDBStore(path: folder + "/http", codec: .raw)
/// let cache = try await HTTPCache(store, configuration: .private)
/// let http = CachedHTTPClient(cache: cache)
/// let request = HTTPClientRequest(url: "https://example.com/news")
/// let response = try await http.execute(request, deadline: .now() + .seconds(10))
/// for try await buffer in response.body { … }
/// try await http.shutdown()
/// ```
///
/// A request is answered from the store if RFC 9111 allows that, and sent by an `HTTPClient` of its own otherwise. Requests
/// with a body and unsafe methods are forwarded as they are, and invalidate what they change. Bodies are streamed both ways,
/// with back-pressure. The field `Cache-Status` of a response says how it was answered; see
/// ``AsyncHTTPClient/HTTPClientResponse/cacheStatus``.
///
/// ## Redirects and encoded bodies
///
/// The client inside follows no redirects and decodes no bodies, so the cache sees each response as the origin sent it.
/// The `CachedHTTPClient` does both above the cache: each response to a redirect is answered by the cache too, and what
/// is stored is what was sent.
///
/// ## Users
///
/// In a private cache, the response to a request with `Authorization` is reused only for the same value of that field,
/// unless the response has `public`. The store contains a keyed hash of the value. Cookies do not separate users: pass a
/// partition if a program makes requests for several users whose responses depend on cookies, or on a certificate of the
/// client.
///
/// ## Concurrency
///
/// All methods can be called from any task.
public struct CachedHTTPClient: Sendable {
  /// The handling of redirects.
  public struct Redirects: Sendable, Hashable {
    /// The largest number of redirects, or `nil` if they are not followed.
    let limit: Int?
    let allowsCycles: Bool
    let resendsBodies: Bool

    /// Redirects are returned like other responses.
    public static let disallow = Redirects(limit: nil, allowsCycles: false, resendsBodies: false)

    /// Redirects are followed, as AsyncHTTPClient does: `GET` replaces the method after 303, and `POST` after 301 and 302.
    ///
    /// Credentials are not sent to another origin.
    ///
    /// ```swift
    /// let http = CachedHTTPClient(cache: cache, redirects: .follow(max: 3))
    /// ```
    ///
    /// - Parameters:
    ///   - max: The largest number of redirects of a request. Defaults to 5. After more, the request fails with
    ///     `redirectLimitReached`.
    ///   - allowCycles: A Boolean value that indicates whether a URL may come twice. Defaults to `false`. Otherwise,
    ///     the request fails with `redirectCycleDetected`.
    ///   - resendsBodies: A Boolean value that indicates whether a redirect that needs the body of the request again is
    ///     followed, such as one with the status 307. Defaults to `false`, so the redirect is the response. With
    ///     `true`, all bodies must be ones that can be iterated twice, such as `.bytes`.
    public static func follow(max: Int = 5, allowCycles: Bool = false, resendsBodies: Bool = false) -> Redirects {
      Redirects(limit: max, allowsCycles: allowCycles, resendsBodies: resendsBodies)
    }
  }

  private let client: HTTPClient
  private let cache: HTTPCache
  private let redirects: Redirects
  private let decodesBodies: Bool
  private let key: SymmetricKey

  /// Creates a client.
  ///
  /// Shut it down after use with ``shutdown()``.
  ///
  /// - Parameters:
  ///   - cache: The cache. It can be used by others too.
  ///   - configuration: The configuration of the `HTTPClient` that sends the requests. Defaults to that of
  ///     `HTTPClient.shared`. Its handling of redirects and its decompression are not used; the next arguments replace
  ///     them.
  ///   - eventLoopGroup: The event loops of the `HTTPClient`. Defaults to those of `HTTPClient.shared`.
  ///   - redirects: The handling of redirects. Defaults to at most 5 without cycles.
  ///   - decodesBodies: A Boolean value that indicates whether bodies in `gzip` and `deflate` are decoded while you
  ///     read them, and asked for with `Accept-Encoding` if a request does not have this field and no range. Defaults
  ///     to `true`. A body in more than five codings, or in another one, is passed on as it is. With `false`, each body
  ///     is the one that the origin sent.
  ///   - credentialsKey: The secret key of the hash that separates users, at least 32 random bytes. Defaults to `nil`,
  ///     for a new one. With a new one, the responses to requests with `Authorization` are not reused by other programs
  ///     or after a restart. Keep the key outside the store, because anyone who has both can test guesses of passwords.
  public init(
    cache: HTTPCache, configuration: HTTPClient.Configuration = .singletonConfiguration,
    eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup, redirects: Redirects = .follow(),
    decodesBodies: Bool = true, credentialsKey: [UInt8]? = nil
  ) {
    var configuration = configuration
    configuration.redirectConfiguration = .disallow
    configuration.decompression = .disabled
    client = HTTPClient(eventLoopGroup: eventLoopGroup, configuration: configuration)
    self.cache = cache
    self.redirects = redirects
    self.decodesBodies = decodesBodies
    key = credentialsKey.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
  }

  /// Closes the connections of the client.
  ///
  /// Bodies from the origin that are being read end with an error. Later requests that need the origin fail with
  /// `alreadyShutdown`. The cache stays open.
  ///
  /// - Throws: `HTTPClientError.alreadyShutdown` if the client was shut down before.
  public func shutdown() async throws {
    try await client.shutdown()
  }

  /// Returns the response to a request, from the store or from the origin.
  ///
  /// The version of the response is 1.1 whatever the origin's, because a stored response has no version.
  ///
  /// ```swift
  /// let response = try await http.execute(request, deadline: .now() + .seconds(10), partition: Array(account.utf8))
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - deadline: The time by which the head of the response must have arrived.
  ///   - logger: The logger of the client. Defaults to `nil`.
  ///   - policy: The policy of the cache. Defaults to `standard`.
  ///   - partition: The partition of the cache. Defaults to `nil`, for the one of the cache's configuration.
  /// - Returns: The response. Its body may still be arriving, and can be iterated once.
  /// - Throws: The errors of `HTTPClient.execute` if no stored response may be used in place of the origin's, such as
  ///   `HTTPClientError.deadlineExceeded`; `CancellationError`.
  public func execute(
    _ request: HTTPClientRequest, deadline: NIODeadline, logger: Logger? = nil, policy: HTTPCachePolicy = .standard,
    partition: [UInt8]? = nil
  ) async throws -> HTTPClientResponse {
    guard NIODeadline.now() < deadline else { throw HTTPClientError.deadlineExceeded }
    let call = Call(deadline: deadline, logger: logger, policy: policy, partition: partition)
    return try await followingRedirects(request, call)
  }

  /// Returns the response to a request, from the store or from the origin.
  ///
  /// ```swift
  /// let response = try await http.execute(HTTPClientRequest(url: "https://example.com/news"), timeout: .seconds(10))
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - timeout: The time that may pass until the head of the response has arrived.
  ///   - logger: The logger of the client. Defaults to `nil`.
  ///   - policy: The policy of the cache. Defaults to `standard`.
  ///   - partition: The partition of the cache. Defaults to `nil`, for the one of the cache's configuration.
  /// - Returns: The response; see ``execute(_:deadline:logger:policy:partition:)``.
  /// - Throws: The errors of ``execute(_:deadline:logger:policy:partition:)``.
  public func execute(
    _ request: HTTPClientRequest, timeout: TimeAmount, logger: Logger? = nil, policy: HTTPCachePolicy = .standard,
    partition: [UInt8]? = nil
  ) async throws -> HTTPClientResponse {
    try await execute(request, deadline: .now() + timeout, logger: logger, policy: policy, partition: partition)
  }

  /// The arguments of a call that are the same for all its redirects.
  private struct Call: Sendable {
    let deadline: NIODeadline
    let logger: Logger?
    let policy: HTTPCachePolicy
    let partition: [UInt8]?

    /// The time that the request may wait for that of another caller.
    ///
    /// After it, its own request exceeds the deadline.
    var remaining: Duration? {
      deadline == .distantFuture ? nil : .nanoseconds((deadline - .now()).nanoseconds)
    }
  }

  // MARK: Redirects

  private func followingRedirects(_ request: HTTPClientRequest, _ call: Call) async throws -> HTTPClientResponse {
    var request = request
    if decodesBodies, ForwardedTarget(request) != nil, !request.headers.contains(name: "Accept-Encoding"),
      !request.headers.contains(name: "Range")
    {
      request.headers.add(name: "Accept-Encoding", value: "gzip, deflate")
    }
    var redirection = Redirection(redirects, from: request.url)
    var history: [HTTPClientRequestResponse] = []
    while true {
      guard let target = ForwardedTarget(request) else {
        // The client says what is wrong with the request, or uses the socket that the URL names.
        return try await client.execute(request, deadline: call.deadline, logger: call.logger)
      }
      let head = HTTPRequest(
        method: target.method, scheme: target.scheme, authority: target.authority, path: target.path,
        headerFields: try HTTPFields(of: request))
      let answer = try await response(to: request, head, call)
      let status = HTTPResponseStatus(
        statusCode: answer.head.status.code, reasonPhrase: answer.head.status.reasonPhrase)
      let headers = HTTPHeaders(answer.head.headerFields)
      history.append(
        HTTPClientRequestResponse(
          request: request, responseHead: HTTPResponseHead(version: .http1_1, status: status, headers: headers)))
      guard let next = redirection.next(after: request, HTTPRedirect(from: head, by: answer.head)) else {
        return response(to: request, status, headers, answer.body, history)
      }
      try redirection.follow(to: next.url)
      if answer.cacheStatus.isStored { try await answer.body.discard(within: call.remaining) }
      guard NIODeadline.now() < call.deadline else { throw HTTPClientError.deadlineExceeded }
      request = next
    }
  }

  /// Returns the last response of a request to the caller.
  private func response(
    to request: HTTPClientRequest, _ status: HTTPResponseStatus, _ headers: HTTPHeaders, _ body: HTTPCacheBody,
    _ history: [HTTPClientRequestResponse]
  ) -> HTTPClientResponse {
    let hasBody = request.method != .HEAD && status != .noContent && status != .notModified
    guard decodesBodies, hasBody, let count = DecodedBody.codingCount(status: status, headers), count > 0 else {
      return HTTPClientResponse(
        status: status, headers: headers, body: .stream(body.map { ByteBuffer(bytes: $0) }), history: history)
    }
    var decoded = headers
    for name in ["Content-Encoding", "Content-Length"] { decoded.remove(name: name) }
    return HTTPClientResponse(
      status: status, headers: decoded, body: .stream(DecodedBody(body: body, codingCount: count)), history: history)
  }

  // MARK: Requests

  private func response(
    to request: HTTPClientRequest, _ head: HTTPRequest, _ call: Call
  ) async throws -> HTTPCacheResponse {
    while true {
      do {
        return try await cache.response(
          to: head, policy: call.policy, partition: call.partition, identity: identity(of: head),
          waitLimit: call.remaining
        ) { [client] forwarded in
          try await Self.send(forwarded, of: request, by: client, call)
        }
      } catch let error as HTTPClientError where error == .deadlineExceeded && request.body == nil {
        // The request waited for that of another caller, whose deadline was earlier.
        guard NIODeadline.now() < call.deadline else { throw error }
      }
    }
  }

  /// Returns the identity of the cache's configuration, with a keyed hash of the credentials if the cache is private.
  private func identity(of head: HTTPRequest) -> [UInt8] {
    let identity = cache.configuration.identity(head)
    let credentials = head.headerFields[values: .authorization]
    guard cache.configuration.mode == .private, !credentials.isEmpty else { return identity }
    let text = credentials.joined(separator: "\n")
    return identity + HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key)
  }

  /// Sends a request of the cache.
  private static func send(
    _ forwarded: HTTPRequest, of request: HTTPClientRequest, by client: HTTPClient, _ call: Call
  ) async throws -> HTTPForwardedResponse {
    // The client would still connect.
    guard NIODeadline.now() < call.deadline else { throw HTTPClientError.deadlineExceeded }
    var sent = request
    var fields = forwarded.headerFields
    fields[.transferEncoding] = nil
    sent.headers = HTTPHeaders(fields)
    return HTTPForwardedResponse(try await client.execute(sent, deadline: call.deadline, logger: call.logger))
  }
}

extension HTTPClientResponse {
  /// The way a cache answered, read from `Cache-Status`.
  ///
  /// `nil` if the response does not have the field, or a cache of another program wrote it in another form. A
  /// ``CachedHTTPClient`` adds the field unless the cache's configuration has no name; the status is then the one of a
  /// cache on the way, if there is one.
  public var cacheStatus: CacheStatus? {
    headers["Cache-Status"].last.flatMap { CacheStatus(fieldValue: $0) }
  }
}
#endif
