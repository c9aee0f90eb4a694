#if Hummingbird && HTTPCache
import HTTPCachingRules
import HTTPTypes
public import Hummingbird
import Larder
public import LarderHTTPCache
import NIOCore
public import ServiceLifecycle

/// A responder that answers requests from an HTTP cache, and passes the others to another responder, such as that of a router.
///
/// ```swift
/// let cache = try await HTTPCache(bytes, configuration: .shared)
/// let responder = try CachedResponder(router.buildResponder(), cache: cache)
/// let application = Application(responder: responder, services: [responder])
/// ```
///
/// The responder is a shared cache by RFC 9111 in front of a server's own responses. It is no middleware, because the cache calls
/// the handler when no request runs: to refresh a stale response, and for clients that wait for a response after the first one of
/// them has gone. The `next` closure of a middleware can be called only while its request runs.
///
/// ## Stored responses
///
/// A handler decides by the field `Cache-Control`. In addition to the rules of a shared cache, two rules keep the response for one
/// user from others:
///
/// - A response without `Cache-Control`, or one of `HTTPCacheConfiguration.targetedFields`, is not stored.
/// - The response to a request with `Cookie` is stored only if it has `public` or `s-maxage`, as RFC 9111 requires for a
///   request with `Authorization`.
///
/// A stored response answers every client, whatever its cookies. If a response depends on a field of the request, name the field
/// in `Vary`. If it depends on the user, respond with `private` or `no-store`.
///
/// The middleware of the router does not run for a request that the cache answers, whether it authenticates, counts or logs.
///
/// ## Handlers
///
/// `GET` and `HEAD` without a body go through the cache. Requests for the same URL share one call of the handler if its response
/// is stored. The handler runs in a task of its own, which is cancelled when no client waits for it, and may end after the request.
/// It receives a request without a body, with the conditions and the range that the cache needs, and the context of the request
/// that caused it, so a context must not depend on an open connection.
///
/// An error that a handler throws counts as a response with the status 500. It is thrown, unless a stored response has
/// `stale-if-error` and answers in its place. A handler that takes longer than
/// `HTTPCacheConfiguration.originTimeLimit` counts as a server that cannot be reached: a stale response answers
/// in its place, unless it has `must-revalidate`.
///
/// Other requests pass unchanged. A successful response to an unsafe method invalidates what is stored for the URL.
///
/// Bodies are streamed with back-pressure, and trailer fields are dropped. A body that ends without `finish` was cut short, and is
/// not stored.
///
/// ## URLs
///
/// Responses are stored by the URL with the scheme and the host of the request. Behind a proxy that ends TLS, the scheme is `http`.
/// A request without a host, as HTTP/1.0 allows, passes unchanged.
///
/// ## Life of the cache
///
/// The responder closes neither the cache nor its store. As a service, it keeps the store tidy until the graceful shutdown; see
/// `HTTPCache.run()`.
public struct CachedResponder<Base: HTTPResponder>: HTTPResponder, Service where Base.Context: Sendable {
  /// The responder that answers the requests that the cache does not answer.
  public let base: Base

  /// The cache.
  public let cache: HTTPCache

  /// Creates a responder.
  ///
  /// - Parameters:
  ///   - base: The responder that answers the requests that the cache does not answer.
  ///   - cache: A shared cache. No client of other servers may use it or its prefix, because it stores responses by their URLs.
  /// - Throws: `StoreError` with `invalidArgument` if the cache is private.
  public init(_ base: Base, cache: HTTPCache) throws {
    guard cache.configuration.mode == .shared else {
      throw StoreError(
        .invalidArgument, during: .open, store: "HTTPCache",
        message: "the cache of a server has many users, so its configuration must be .shared, not .private")
    }
    self.base = base
    self.cache = cache
  }

  /// Returns the response to a request, from the cache or from the other responder.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - context: The context of the request.
  /// - Returns: The response, with `Age` and `Cache-Status` if the cache adds them.
  /// - Throws: The errors of the other responder; `HTTPCacheError` with `interimResponse` if its response has a status below 200;
  ///   `CancellationError`.
  @concurrent public func respond(to request: Request, context: Base.Context) async throws -> Response {
    var head = request.head
    if head.scheme == nil { head.scheme = "http" }
    guard head.method == .get || head.method == .head, !head.hasBody else {
      return try await invalidating(head, try await base.respond(to: request, context: context))
    }
    let failure = Locked<(any Error)?>(nil)
    let response: HTTPCacheResponse
    do {
      response = try await cache.response(to: head) { [base, cache] forwarded in
        // The body of the request belongs to its connection, which may read the next request by now.
        let request = Request(head: forwarded, body: RequestBody(buffer: ByteBuffer()))
        do {
          return HTTPForwardedResponse(
            try await base.respond(to: request, context: context), to: forwarded, in: cache.configuration)
        } catch let error where !(error is CancellationError) {
          // The server can be reached, so a stale response needs the permission of stale-if-error.
          failure.withLock { $0 = error }
          return HTTPForwardedResponse(head: HTTPResponse(status: .internalServerError))
        }
      }
    } catch let error as HTTPCacheError where error.code == .invalidURL {
      return try await base.respond(to: request, context: context)
    }
    if response.head.status == .internalServerError, let error = failure.withLock({ $0 }) { throw error }
    return Response(response, to: head.method)
  }

  /// Keeps the store of the cache tidy until the graceful shutdown or the cancellation of the task.
  public func run() async throws {
    await cancelWhenGracefulShutdown { [cache] in await cache.run() }
  }

  /// Invalidates what is stored for the URL of an unsafe request.
  ///
  /// - Parameters:
  ///   - request: The head of the request.
  ///   - response: The response of the handler, which ran in the task of the request because it reads the request's body.
  /// - Returns: The response.
  @concurrent private func invalidating(_ request: HTTPRequest, _ response: Response) async throws -> Response {
    guard ![.get, .head, .options, .trace].contains(request.method) else { return response }
    var head = response.head
    head.headerFields[.contentLength] = nil
    var forwarded = HTTPForwardedResponse(head: head)
    forwarded.isStorable = false
    do {
      // The request had its effect, so the invalidation happens also if the task is cancelled.
      _ = try await Task { [forwarded] in try await cache.response(to: request) { _ in forwarded } }.value
    } catch let error as HTTPCacheError where error.code == .invalidURL {
      // Nothing can be stored for this URL.
    }
    return response
  }
}

extension HTTPRequest {
  /// A Boolean value that indicates whether a body follows the head.
  fileprivate var hasBody: Bool {
    headerFields.contains(.transferEncoding) || headerFields[.contentLength].map { $0 != "0" } ?? false
  }
}

extension HTTPForwardedResponse {
  /// Creates the response that the cache decides on.
  fileprivate init(_ response: Response, to request: HTTPRequest, in configuration: HTTPCacheConfiguration) {
    self.init(head: response.head) { write in
      let writer = BodyWriter(write)
      try await response.body.write(writer)
      guard writer.isFinished else { throw UnfinishedBody() }
    }
    let lines = ([.cacheControl] + configuration.targetedFields).flatMap { response.headers[values: $0] }
    let control = CacheControl(lines.map { Array($0.utf8) })
    let isForAll = !request.headerFields.contains(.cookie) || control.isPublic || control.sharedMaxAge != nil
    isStorable = !lines.isEmpty && isForAll
  }
}

/// A writer that passes a body to the cache.
private final class BodyWriter: ResponseBodyWriter {
  private let send: HTTPForwardedResponse.Write
  private(set) var isFinished = false

  init(_ send: @escaping HTTPForwardedResponse.Write) {
    self.send = send
  }

  func write(_ buffer: ByteBuffer) async throws {
    try await send(Array(buffer.readableBytesView))
  }

  func finish(_ trailingHeaders: HTTPFields?) async throws {
    isFinished = true
  }
}

/// The error of a body that its handler has not finished.
private struct UnfinishedBody: Error, CustomStringConvertible {
  var description: String { "the handler has not finished the body of its response; call finish(_:) of the writer" }
}

extension Response {
  /// Creates the response for a client.
  fileprivate init(_ response: HTTPCacheResponse, to method: HTTPRequest.Method) {
    let (head, body) = (response.head, response.body)
    guard method != .head, head.status != .noContent, head.status != .notModified else {
      self.init(status: head.status, headers: head.headerFields)
      return
    }
    let length = head.headerFields[.contentLength].flatMap { Int($0) }
    self.init(
      status: head.status, headers: head.headerFields,
      body: ResponseBody(contentLength: length) { writer in
        for try await chunk in body { try await writer.write(ByteBuffer(bytes: chunk)) }
        try await writer.finish(nil)
      })
  }
}
#endif
