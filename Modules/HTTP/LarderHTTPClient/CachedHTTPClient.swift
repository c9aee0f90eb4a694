#if HTTPClient
public import AsyncHTTPClient
internal import Crypto
internal import HTTPTypes
public import LarderHTTPCache
public import Logging
public import NIOCore
internal import NIOHTTP1

/// An `HTTPClient` with a cache.
///
/// ```swift
/// let store = try await LMDBStore(path: folder + "/http", codec: .raw)
/// let cache = try await HTTPCache(store, configuration: .private)
/// let http = CachedHTTPClient(HTTPClient.shared, cache: cache)
/// let request = HTTPClientRequest(url: "https://example.com/news")
/// let response = try await http.execute(request, deadline: .now() + .seconds(10))
/// for try await buffer in response.body { … }
/// ```
///
/// A request is answered from the store if RFC 9111 allows that, and sent by the client otherwise. Requests with a body
/// and unsafe methods are forwarded as they are, and invalidate what they change. Bodies are streamed both ways, with
/// back-pressure. The field `Cache-Status` of a response says how it was answered; see
/// ``AsyncHTTPClient/HTTPClientResponse/cacheStatus``.
///
/// ## Users
///
/// In a private cache, the response to a request with `Authorization` is reused only for the same value of that field,
/// unless the response has `public`. The store contains a keyed hash of the value. Cookies do not separate users: pass a
/// partition if a program makes requests for several users whose responses depend on cookies, or on a certificate of the
/// client.
///
/// ## Redirects
///
/// Each response to a redirect is answered by the cache too. Redirects that need the body of the request again are followed
/// only if the client follows them itself.
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

    /// Redirects are returned like other responses.
    public static let disallow = Redirects(limit: nil, allowsCycles: false)

    /// Redirects are followed, as AsyncHTTPClient does: `GET` replaces the method after 303, and `POST` after 301 and 302.
    ///
    /// Credentials are not sent to another origin. A redirect from a URL to itself fails also if the configuration of the
    /// client does not allow cycles.
    ///
    /// - Parameters:
    ///   - max: The largest number of redirects of a request; defaults to 5. After more, the request fails with
    ///     `redirectLimitReached`.
    ///   - allowCycles: Whether a URL may come twice; defaults to `false`. Otherwise, the request fails with
    ///     `redirectCycleDetected`.
    public static func follow(max: Int = 5, allowCycles: Bool = false) -> Redirects {
      Redirects(limit: max, allowsCycles: allowCycles)
    }
  }

  private let client: HTTPClient
  private let cache: HTTPCache
  private let redirects: Redirects
  private let key: SymmetricKey

  /// Creates a client.
  ///
  /// - Parameters:
  ///   - client: The client that sends requests. You shut it down.
  ///   - cache: The cache. It can be used by others too.
  ///   - redirects: The handling of redirects; defaults to at most 5 without cycles, like that of `HTTPClient`.
  ///   - credentialsKey: The secret key of the hash that separates users, at least 32 random bytes; defaults to `nil`, for a
  ///     new one. With a new one, the responses to requests with `Authorization` are not reused by other programs or
  ///     after a restart. Keep the key outside the store, because anyone who has both can test guesses of passwords.
  public init(
    _ client: HTTPClient, cache: HTTPCache, redirects: Redirects = .follow(), credentialsKey: [UInt8]? = nil
  ) {
    self.client = client
    self.cache = cache
    self.redirects = redirects
    key = credentialsKey.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
  }

  /// Returns the response to a request, from the store or from the origin.
  ///
  /// The version of the response is 1.1 whatever the origin's, because a stored response has none.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - deadline: The time by which the head of the response must have arrived.
  ///   - logger: The logger of the client; defaults to `nil`, for none.
  ///   - policy: The policy of the cache; defaults to `standard`.
  ///   - partition: The partition of the cache; defaults to `nil`, for the one of the cache's configuration.
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
  /// - Parameters:
  ///   - request: The request.
  ///   - timeout: The time that may pass until the head of the response has arrived.
  ///   - logger: The logger of the client; defaults to `nil`, for none.
  ///   - policy: The policy of the cache; defaults to `standard`.
  ///   - partition: The partition of the cache; defaults to `nil`, for the one of the cache's configuration.
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

    /// The time for which the request may wait for that of another caller.
    ///
    /// After it, its own request exceeds the deadline.
    var remaining: Duration? {
      deadline == .distantFuture ? nil : .nanoseconds((deadline - .now()).nanoseconds)
    }
  }

  // MARK: Redirects

  private func followingRedirects(_ request: HTTPClientRequest, _ call: Call) async throws -> HTTPClientResponse {
    var request = request
    var redirection = Redirection(redirects, from: request.url)
    var history: [HTTPClientRequestResponse] = []
    let received = ReceivedHops()
    while true {
      guard let target = ForwardedTarget(request) else {
        // The client says what is wrong with the request, or uses the socket that the URL names.
        return try await client.execute(request, deadline: call.deadline, logger: call.logger)
      }
      let answer = try await response(to: request, target, call, received)
      let status = HTTPResponseStatus(
        statusCode: answer.head.status.code, reasonPhrase: answer.head.status.reasonPhrase)
      let headers = HTTPHeaders(answer.head.headerFields)
      history.append(
        HTTPClientRequestResponse(
          request: request, responseHead: HTTPResponseHead(version: .http1_1, status: status, headers: headers)))
      guard
        let next = redirects.limit == nil
          ? nil : received.nextRequest ?? redirection.next(after: request, status: status, headers: headers)
      else {
        return HTTPClientResponse(
          status: status, headers: headers, body: .stream(answer.body.map { ByteBuffer(bytes: $0) }), history: history)
      }
      try redirection.follow(to: next.url)
      if answer.cacheStatus.isStored { try await discard(answer.body) }
      request = next
    }
  }

  /// Reads a small body of a redirect to its end, because only a whole body is stored.
  private func discard(_ body: HTTPCacheBody) async throws {
    var count = 0
    do {
      for try await bytes in body {
        count += bytes.count
        if count > 65_536 { break }
      }
    } catch {
      // The redirect is followed all the same; it is only not stored.
      try Task.checkCancellation()
    }
  }

  // MARK: Requests

  private func response(
    to request: HTTPClientRequest, _ target: ForwardedTarget, _ call: Call, _ received: ReceivedHops
  ) async throws -> HTTPCacheResponse {
    let head = HTTPRequest(
      method: target.method, scheme: target.scheme, authority: target.authority, path: target.path,
      headerFields: try HTTPFields(of: request))
    while true {
      do {
        return try await cache.response(
          to: head, policy: call.policy, partition: call.partition, identity: identity(of: head),
          waitLimit: call.remaining
        ) { [client] forwarded in
          try await Self.send(forwarded, of: request, by: client, call, received)
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
    _ forwarded: HTTPRequest, of request: HTTPClientRequest, by client: HTTPClient, _ call: Call,
    _ received: ReceivedHops
  ) async throws -> HTTPForwardedResponse {
    var sent = request
    var fields = forwarded.headerFields
    fields[.transferEncoding] = nil
    sent.headers = HTTPHeaders(fields)
    if let response = received.take(for: sent) {
      return try await OriginResponse.forwarded(
        response, to: forwarded, isComplete: received.nextRequest == nil)
    }
    // The client would still connect.
    guard NIODeadline.now() < call.deadline else { throw HTTPClientError.deadlineExceeded }
    if request.body == nil {
      // The client follows a redirect only if it can send the body again, which it takes a stream not to allow. The cache
      // must see each response, and the conditions that it adds are for one URL.
      sent.body = .stream(EmptyBody(), length: .known(Int64(0)))
    }
    let response = try await client.execute(sent, deadline: call.deadline, logger: call.logger)
    let first = received.receive(response)
    return try await OriginResponse.forwarded(first, to: forwarded, isComplete: received.nextRequest == nil)
  }
}

/// A request body without bytes.
private struct EmptyBody: AsyncSequence, AsyncIteratorProtocol, Sendable {
  @concurrent
  func next() async throws -> ByteBuffer? { nil }

  func makeAsyncIterator() -> EmptyBody { self }
}

extension HTTPFields {
  /// Creates the fields of a request.
  ///
  /// The client frames the body itself. The cache needs to know whether there is one.
  ///
  /// - Throws: The errors of the client for invalid fields.
  fileprivate init(of request: HTTPClientRequest) throws {
    self.init()
    reserveCapacity(request.headers.count + 1)
    for (name, value) in request.headers {
      guard let field = HTTPField.Name(name) else { throw HTTPClientError.invalidHeaderFieldNames([name]) }
      guard HTTPField.isValidValue(value) else { throw HTTPClientError.invalidHeaderFieldValues([value]) }
      if field == .contentLength || field == .transferEncoding { continue }
      append(HTTPField(name: field, value: value))
    }
    if request.body != nil { append(HTTPField(name: .transferEncoding, value: "chunked")) }
  }
}

extension HTTPHeaders {
  fileprivate init(_ fields: HTTPFields) {
    self.init()
    reserveCapacity(fields.count)
    for field in fields { add(name: field.name.rawName, value: field.value) }
  }
}

extension HTTPClientResponse {
  /// The way in which a cache answered, read from `Cache-Status`.
  ///
  /// `nil` if the response does not have the field, or a cache of another program wrote it in another form. A
  /// ``CachedHTTPClient`` adds the field unless the cache's configuration has no name; the status is then the one of a
  /// cache on the way, if there is one.
  public var cacheStatus: CacheStatus? {
    headers["Cache-Status"].last.flatMap { CacheStatus(fieldValue: $0) }
  }
}
#endif
