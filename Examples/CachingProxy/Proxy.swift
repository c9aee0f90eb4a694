import AsyncHTTPClient
import HTTPTypes
import HummingbirdCore
import Larder
import LarderHTTPCache
import NIOCore
import NIOHTTPTypes

/// Answers requests from a cache, and forwards the others to an origin.
struct Proxy: Sendable {
  /// The way to the origin.
  enum Upstream: Sendable {
    /// Connections of the proxy's own, for a cache of many users.
    case connections(Origin, HTTPCache)
    /// A client of AsyncHTTPClient that has the cache, as a program uses it.
    case client(ClientOrigin)

    /// Closes the connections of the client.
    func shutdown() async throws {
      if case .client(let origin) = self { try await origin.shutdown() }
    }
  }

  let upstream: Upstream

  /// Responds to a request.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - writer: The writer of the response.
  ///   - channel: The channel of the client.
  /// - Throws: ``ConnectionEnded`` if the connection to the client must be closed.
  @concurrent
  func respond(to request: Request, writer: consuming ResponseWriter, channel: any Channel) async throws {
    do {
      try await answer(request, writer, channel)
    } catch {
      // A response that has begun ends here, without its last bytes.
      throw ConnectionEnded()
    }
  }

  @concurrent
  private func answer(_ request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel) async throws {
    guard let target = request.head.path, target.hasPrefix("/") || target == "*" else {
      return try await Self.refuse(.badRequest, "The proxy does not serve this request.", to: request, writer)
    }
    let length = request.headers[.contentLength].flatMap { Int64($0) }
    switch upstream {
    case .client(let origin):
      let upload = request.head.hasBody ? ClientUpload(request.body, length: length) : nil
      do {
        try await forward(request, to: origin, upload: upload, writer: writer)
      } catch {
        await upload?.stop()
        throw error
      }
      await upload?.stop()
    case .connections(let origin, let cache):
      let upload = request.head.hasBody ? Upload(request.body, length: length.map { Int($0) }) : nil
      do {
        try await forward(request, to: origin, cache, upload: upload, writer: writer, channel: channel)
      } catch {
        await upload?.stop()
        throw error
      }
      await upload?.stop()
    }
  }

  @concurrent
  private func forward(
    _ request: Request, to origin: ClientOrigin, upload: ClientUpload?, writer: consuming ResponseWriter
  ) async throws {
    let response: ClientOrigin.Response
    do {
      response = try await origin.send(request, upload: upload)
    } catch {
      let isMalformed = await upload?.stop() ?? false
      let isTimeout = error as? HTTPClientError == .readTimeout || error as? HTTPClientError == .connectTimeout
      return try await Self.refuse(isMalformed: isMalformed, isTimeout: isTimeout, request, writer)
    }
    try await Self.write(response.head, body: response.body, to: request, writer)
  }

  @concurrent
  private func forward(
    _ request: Request, to origin: Origin, _ cache: HTTPCache, upload: Upload?, writer: consuming ResponseWriter,
    channel: any Channel
  ) async throws {
    let interim = InterimResponses(channel: channel)
    let response: HTTPCacheResponse
    do {
      response = try await cache.response(to: Self.forwarded(request.head, to: origin)) { forwarded in
        var response = try await origin.send(forwarded, upload: upload, interim: interim.forward)
        response.head.headerFields.removeHopByHopFields()
        return HTTPForwardedResponse(head: response.head, body: response.body)
      }
      interim.end()
    } catch let error as HTTPCacheError where error.code == .invalidURL {
      return try await Self.refuse(.badRequest, "The proxy does not serve this request target.", to: request, writer)
    } catch {
      interim.end()
      let isTimeout = if case OriginError.timedOut = error { true } else { false }
      return try await Self.refuse(
        isMalformed: upload?.isMalformed ?? false, isTimeout: isTimeout, request, writer)
    }
    try await Self.write(response.head, body: response.body.map { ByteBuffer(bytes: $0) }, to: request, writer)
  }

  /// Returns a request as it is sent to the origin.
  private static func forwarded(_ request: HTTPRequest, to origin: Origin) -> HTTPRequest {
    var forwarded = request
    forwarded.scheme = "http"
    forwarded.authority = origin.authority
    forwarded.headerFields.removeHopByHopFields()
    forwarded.headerFields.removeUnkeyedFields()
    if request.hasBody, !forwarded.headerFields.contains(.contentLength) {
      forwarded.headerFields[.transferEncoding] = "chunked"
    }
    forwarded.headerFields.append(HTTPField(name: .via, value: "1.1 CachingProxy"))
    return forwarded
  }

  @concurrent
  private static func write(
    _ head: HTTPResponse, body: some AsyncSequence<ByteBuffer, any Error> & Sendable, to request: Request,
    _ writer: consuming ResponseWriter
  ) async throws {
    var head = head
    head.removeImpossibleLength()
    let hasBody = head.hasBody(inResponseTo: request.method)
    if hasBody, !head.headerFields.contains(.contentLength) { head.headerFields[.transferEncoding] = "chunked" }
    var bodyWriter = try await writer.writeHead(head)
    if hasBody {
      for try await buffer in body { try await bodyWriter.write(buffer) }
    }
    try await bodyWriter.finish(nil)
  }

  /// Responds to a request to which the origin gave no response.
  ///
  /// - Throws: ``ConnectionEnded`` if the body of the client was malformed: what follows it cannot be read.
  @concurrent
  private static func refuse(
    isMalformed: Bool, isTimeout: Bool, _ request: Request, _ writer: consuming ResponseWriter
  ) async throws {
    guard isMalformed else {
      let status: HTTPResponse.Status = isTimeout ? .gatewayTimeout : .badGateway
      return try await refuse(status, "The origin did not answer.", to: request, writer)
    }
    try await refuse(.badRequest, "The body of the request is malformed.", to: request, writer)
    throw ConnectionEnded()
  }

  /// Responds with a status of the proxy's own.
  @concurrent
  private static func refuse(
    _ status: HTTPResponse.Status, _ text: String, to request: Request, _ writer: consuming ResponseWriter
  ) async throws {
    let body = ByteBuffer(string: text + "\n")
    var head = HTTPResponse(
      status: status,
      headerFields: [.contentType: "text/plain; charset=utf-8", .contentLength: "\(body.readableBytes)"])
    if status == .badRequest { head.headerFields[.connection] = "close" }
    var bodyWriter = try await writer.writeHead(head)
    if head.hasBody(inResponseTo: request.method) { try await bodyWriter.write(body) }
    try await bodyWriter.finish(nil)
  }
}

/// Forwards interim responses to a client until the final response begins.
private final class InterimResponses: Sendable {
  private let channel: any Channel
  private let isOpen = Locked(true)

  init(channel: any Channel) {
    self.channel = channel
  }

  func forward(_ head: HTTPResponse) {
    // Within the lock, so that it comes before the final response. Sending only enqueues.
    var head = head
    head.removeImpossibleLength()
    isOpen.withLock { [head] in if $0 { channel.writeAndFlush(HTTPResponsePart.head(head), promise: nil) } }
  }

  func end() {
    isOpen.withLock { $0 = false }
  }
}
