import AsyncAlgorithms
import AsyncHTTPClient
import HTTPTypes
import HummingbirdCore
import LarderHTTPCache
import LarderHTTPClient
import NIOCore
import NIOHTTP1

/// The server behind the proxy, as a client with a private cache sees it.
struct ClientOrigin: Sendable {
  /// A response of the client, whose body is still on its way.
  struct Response: Sendable {
    var head: HTTPResponse
    var body: HTTPClientResponse.Body
  }

  /// The number of connections at the same time.
  ///
  /// One is in use until the client of the proxy has read the body, so the eight of a default configuration would let
  /// eight slow clients stop all others.
  private static let connectionLimit = 1024

  private let authority: String
  private let http: CachedHTTPClient

  /// Creates an origin.
  ///
  /// The browser behind the proxy follows redirects and decodes bodies. If the origin cannot be reached, a stale response
  /// answers immediately.
  ///
  /// - Parameters:
  ///   - authority: The host and port, as in a URL.
  ///   - cache: The cache.
  ///   - timeout: How long to wait for a connection, and for each part of a response.
  init(authority: String, cache: HTTPCache, timeout: Duration) {
    self.authority = authority
    var configuration = HTTPClient.Configuration(
      timeout: .init(connect: TimeAmount(timeout), read: TimeAmount(timeout)))
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.connectionLimit
    http = CachedHTTPClient(cache: cache, configuration: configuration, redirects: .disallow, decodesBodies: false)
  }

  /// Closes the connections.
  func shutdown() async throws {
    try await http.shutdown()
  }

  /// Sends a request, and returns the response as soon as its head is there.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - upload: The body of the request; `nil` if there isn't one.
  /// - Throws: ``OriginError``, `HTTPClientError`, or the error of connecting.
  @concurrent
  func send(_ request: Request, upload: ClientUpload?) async throws -> Response {
    var sent = HTTPClientRequest(url: "http://\(authority)\(request.head.path ?? "/")")
    sent.method = HTTPMethod(rawValue: request.method.rawValue)
    sent.headers = Self.headers(of: request)
    sent.body = upload?.body
    let response = Response(try await http.execute(sent, deadline: .distantFuture))
    // Among these is 101, after which the connection would have another protocol.
    guard response.head.status.kind != .informational else { throw OriginError.malformedResponse }
    return response
  }

  private static func headers(of request: Request) -> HTTPHeaders {
    var fields = request.headers
    fields.removeHopByHopFields()
    fields.removeUnkeyedFields()
    fields[.contentLength] = nil
    fields.append(HTTPField(name: .via, value: "1.1 CachingProxy"))
    // The client cannot use a connection again on which an origin sends more bytes than it announced, but notices that only
    // when they arrive.
    fields[.connection] = "close"
    return HTTPHeaders(fields.map { ($0.name.rawName, String(decoding: $0.value.latin1, as: UTF8.self)) })
  }
}

extension ClientOrigin.Response {
  fileprivate init(_ response: HTTPClientResponse) {
    head = HTTPResponse(
      status: .init(code: Int(response.status.code), reasonPhrase: response.status.reasonPhrase))
    for (name, value) in response.headers {
      guard let name = HTTPField.Name(name) else { continue }
      head.headerFields.append(HTTPField(name: name, value: String(latin1: value.utf8)))
    }
    head.headerFields.removeHopByHopFields()
    body = response.body
  }
}

/// The body of a request on its way to a client of AsyncHTTPClient.
///
/// The client may read the body after it has the response. The server must not, because the next request follows it.
final class ClientUpload: Sendable {
  let body: HTTPClientRequest.Body
  private let reading: Task<Bool, Never>

  init(_ body: RequestBody, length: Int64?) {
    let chunks = AsyncThrowingChannel<ByteBuffer, any Error>()
    self.body = .stream(chunks, length: length.map { .known($0) } ?? .unknown)
    reading = Task {
      do {
        for try await buffer in body { await chunks.send(buffer) }
        chunks.finish()
        return false
      } catch {
        chunks.fail(error)
        return error is HTTPParserError
      }
    }
  }

  /// Returns when the body is no longer read.
  ///
  /// - Returns: A Boolean value that indicates whether the client's body is malformed.
  @discardableResult
  func stop() async -> Bool {
    reading.cancel()
    return await reading.value
  }
}

/// The channels of the proxy have a character for each byte of a field. AsyncHTTPClient has UTF-8.
extension String {
  fileprivate init(latin1 bytes: some Sequence<UInt8>) {
    self.init(UnicodeScalarView(bytes.lazy.map { Unicode.Scalar($0) }))
  }

  fileprivate var latin1: [UInt8] {
    unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
  }
}
