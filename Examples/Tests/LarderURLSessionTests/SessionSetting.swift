import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderTesting
import LarderURLSession

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A session with a cache in front of a server on loopback.
struct SessionSetting: Sendable {
  let base: CachedOrigin
  let session: CachedURLSession

  var origin: TestOrigin { base.origin }
  var cache: HTTPCache { base.cache }
  var clock: ManualClock { base.clock }

  /// Runs a closure with a new cache.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the session. Defaults to an ephemeral one.
  ///   - redirectLimit: The largest number of redirects. Defaults to 20.
  ///   - unreadLimit: The number of bytes that may wait for their reader. Defaults to 16 MiB.
  ///   - answer: A closure that answers a request.
  ///   - body: A closure that sends requests.
  static func run(
    configuration: URLSessionConfiguration = .ephemeral, redirectLimit: Int = 20, unreadLimit: Int = 16 << 20,
    answer: @escaping @Sendable (Message, Wire) async throws -> TestOrigin.Ending,
    _ body: (SessionSetting) async throws -> Void
  ) async throws {
    try await CachedOrigin.run(answer: answer) { base async throws in
      let session = CachedURLSession(
        configuration: configuration, cache: base.cache, redirectLimit: redirectLimit, unreadLimit: unreadLimit)
      defer { session.invalidateAndCancel() }
      try await body(SessionSetting(base: base, session: session))
    }
  }

  /// Returns a request to the server.
  func request(
    _ path: String, _ method: String = "GET", fields: [String: String] = [:], body: String? = nil
  ) throws -> URLRequest {
    guard let url = URL(string: base.url(path)) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    request.httpBody = body.map { Data($0.utf8) }
    return request
  }

  /// Sends a request, and returns the response with its whole body.
  func send(_ request: URLRequest, partition: [UInt8]? = nil) async throws -> Received {
    let (data, response) = try await session.data(for: request, partition: partition)
    return Received(response: response, body: String(decoding: data, as: UTF8.self))
  }

  /// A response with its whole body.
  struct Received {
    let response: HTTPURLResponse
    let body: String

    subscript(name: String) -> String? { response.value(forHTTPHeaderField: name) }
    var isHit: Bool { response.cacheStatus?.isHit == true }
  }
}
