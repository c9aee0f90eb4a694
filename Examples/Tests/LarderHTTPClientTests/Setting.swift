import AsyncHTTPClient
import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderHTTPClient
import LarderTesting
import NIOCore
import NIOHTTP1

/// A client with a cache in front of a server on loopback.
struct Setting: Sendable {
  let base: CachedOrigin
  let http: CachedHTTPClient

  var origin: TestOrigin { base.origin }
  var cache: HTTPCache { base.cache }
  var clock: ManualClock { base.clock }

  /// Runs a closure with a new cache.
  ///
  /// - Parameters:
  ///   - client: The configuration of the client. Defaults to an empty one.
  ///   - mode: The kind of the cache. Defaults to a private one.
  ///   - redirects: The handling of redirects. Defaults to that of the client.
  ///   - decodesBodies: A Boolean value that indicates whether the client decodes bodies. Defaults to `true`.
  ///   - answer: A closure that answers a request.
  ///   - body: A closure that sends requests.
  static func run(
    client configuration: HTTPClient.Configuration = .init(), mode: HTTPCacheMode = .private,
    redirects: CachedHTTPClient.Redirects = .follow(), decodesBodies: Bool = true,
    answer: @escaping @Sendable (Message, Wire) async throws -> TestOrigin.Ending,
    _ body: (Setting) async throws -> Void
  ) async throws {
    try await CachedOrigin.run(mode: mode, answer: answer) { base async throws in
      let http = CachedHTTPClient(
        cache: base.cache, configuration: configuration, redirects: redirects, decodesBodies: decodesBodies)
      try await with(http) { try await body(Setting(base: base, http: $0)) }
    }
  }

  /// Runs a closure with another client, and shuts that down.
  @discardableResult
  static func with<Value>(
    _ http: CachedHTTPClient, _ body: (CachedHTTPClient) async throws -> Value
  ) async throws -> Value {
    let result: Result<Value, any Error>
    do {
      result = .success(try await body(http))
    } catch {
      result = .failure(error)
    }
    try await http.shutdown()
    return try result.get()
  }

  /// Returns a request to the server.
  ///
  /// - Parameters:
  ///   - path: The path and the query.
  ///   - method: The method. Defaults to `GET`.
  ///   - fields: The fields. Defaults to an empty list.
  ///   - body: The body. Defaults to `nil`.
  func request(
    _ path: String, _ method: HTTPMethodName = .get, fields: [(String, String)] = [],
    body: HTTPClientRequest.Body? = nil
  ) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: base.url(path))
    request.method = .init(rawValue: method.rawValue)
    for (name, value) in fields { request.headers.add(name: name, value: value) }
    request.body = body
    return request
  }

  /// The methods that the tests use.
  enum HTTPMethodName: String {
    case get = "GET"
    case head = "HEAD"
    case post = "POST"
    case put = "PUT"
  }

  /// Sends a request, and returns the response with its whole body.
  func send(_ request: HTTPClientRequest, by http: CachedHTTPClient? = nil) async throws -> Received {
    let response = try await (http ?? self.http).execute(request, timeout: .seconds(60))
    let body = try await response.body.collect(upTo: 1 << 20)
    return Received(response: response, body: String(buffer: body))
  }

  /// A response with its whole body.
  struct Received {
    let response: HTTPClientResponse
    let body: String

    subscript(name: String) -> [String] { response.headers[name] }
    var isHit: Bool { response.cacheStatus?.isHit == true }
  }
}
