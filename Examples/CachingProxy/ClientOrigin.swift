import AsyncAlgorithms
import AsyncHTTPClient
import HTTPTypes
import HummingbirdCore
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

  /// The host and port, as in a URL.
  let authority: String

  let http: CachedHTTPClient

  /// Returns the configuration of the client.
  ///
  /// The browser behind the proxy follows redirects and decodes bodies. If the origin cannot be reached, a stale response
  /// answers immediately.
  ///
  /// - Parameter timeout: How long to wait for a connection, and for each part of a response.
  static func configuration(timeout: Duration) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: TimeAmount(timeout), read: TimeAmount(timeout)))
    configuration.connectionPool.retryConnectionEstablishment = false
    return configuration
  }

  /// Sends a request, and returns the response as soon as its head is there.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - upload: The body of the request; `nil` if there is none.
  /// - Throws: `HTTPClientError`, or the error of connecting.
  @concurrent
  func send(_ request: Request, upload: ClientUpload?) async throws -> Response {
    var sent = HTTPClientRequest(url: "http://\(authority)\(request.head.path ?? "/")")
    sent.method = HTTPMethod(rawValue: request.method.rawValue)
    sent.headers = Self.headers(of: request)
    sent.body = upload?.body
    return Response(try await http.execute(sent, deadline: .distantFuture))
  }

  private static func headers(of request: Request) -> HTTPHeaders {
    var fields = request.headers
    fields.removeHopByHopFields()
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
struct ClientUpload: Sendable {
  let body: HTTPClientRequest.Body
  private let reading: Task<Void, Never>

  init(_ body: RequestBody, length: Int64?) {
    let chunks = AsyncThrowingChannel<ByteBuffer, any Error>()
    self.body = .stream(chunks, length: length.map { .known($0) } ?? .unknown)
    reading = Task {
      do {
        for try await buffer in body { await chunks.send(buffer) }
        chunks.finish()
      } catch {
        chunks.fail(error)
      }
    }
  }

  /// Returns when the body is no longer read.
  func stop() async {
    reading.cancel()
    await reading.value
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
