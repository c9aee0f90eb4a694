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
  let origin: TestOrigin
  let cache: HTTPCache
  let session: CachedURLSession

  /// The clock of the cache.
  let clock: ManualClock

  /// Runs a closure with a new cache.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the session; defaults to an ephemeral one.
  ///   - redirectLimit: The largest number of redirects; defaults to 20.
  ///   - unreadLimit: The number of bytes that may wait for their reader; defaults to 16 MiB.
  ///   - answer: A closure that answers a request.
  ///   - body: A closure that sends requests.
  static func run(
    configuration: URLSessionConfiguration = .ephemeral, redirectLimit: Int = 20, unreadLimit: Int = 16 << 20,
    answer: @escaping @Sendable (Message, Wire) async throws -> TestOrigin.Ending,
    _ body: (SessionSetting) async throws -> Void
  ) async throws {
    let clock = ManualClock()
    var settings = HTTPCacheConfiguration.private
    settings.now = { clock.date }
    settings.clock = clock
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: settings)
    let origin = try await TestOrigin(answer: answer)
    let session = CachedURLSession(
      configuration: configuration, cache: cache, redirectLimit: redirectLimit, unreadLimit: unreadLimit)
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await body(SessionSetting(origin: origin, cache: cache, session: session, clock: clock)))
    } catch {
      result = .failure(error)
    }
    session.invalidateAndCancel()
    await origin.stop()
    try result.get()
  }

  /// Returns a request to the server.
  func request(
    _ path: String, _ method: String = "GET", fields: [String: String] = [:], body: String? = nil
  ) throws -> URLRequest {
    guard let url = URL(string: "http://127.0.0.1:\(origin.port)\(path)") else { throw URLError(.badURL) }
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

/// Returns a response in the form in which it is sent.
func response(status: String = "200 OK", _ fields: String..., body: String = "text") -> String {
  let lines = fields.map { "\($0)\r\n" }.joined()
  return "HTTP/1.1 \(status)\r\n\(lines)Content-Length: \(body.unicodeScalars.count)\r\n\r\n\(body)"
}
