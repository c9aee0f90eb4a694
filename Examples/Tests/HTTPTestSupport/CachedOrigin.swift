import Larder
package import LarderHTTPCache
package import LarderTesting

/// A server on loopback and a cache for its responses, whose clock a test moves.
package struct CachedOrigin: Sendable {
  package let origin: TestOrigin
  package let cache: HTTPCache

  /// The clock of the cache: for freshness, and for the time limits of callers.
  package let clock: ManualClock

  /// Runs a closure with a new server and a new cache.
  ///
  /// - Parameters:
  ///   - mode: The kind of the cache. Defaults to a private one.
  ///   - answer: A closure that answers a request.
  ///   - body: A closure that sends requests.
  package static func run(
    mode: HTTPCacheMode = .private, answer: @escaping @Sendable (Message, Wire) async throws -> TestOrigin.Ending,
    _ body: (CachedOrigin) async throws -> Void
  ) async throws {
    let clock = ManualClock()
    var configuration = HTTPCacheConfiguration(mode: mode)
    configuration.now = { clock.date }
    configuration.clock = clock
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: configuration)
    let origin = try await TestOrigin(answer: answer)
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(CachedOrigin(origin: origin, cache: cache, clock: clock)))
    } catch {
      result = .failure(error)
    }
    await origin.stop()
    try result.get()
  }

  /// Returns the URL of a path on the server.
  package func url(_ path: String) -> String { "http://127.0.0.1:\(origin.port)\(path)" }
}

/// Returns a response in the form in which it is sent.
package func response(status: String = "200 OK", _ fields: String..., body: String = "text") -> String {
  let lines = fields.map { "\($0)\r\n" }.joined()
  return "HTTP/1.1 \(status)\r\n\(lines)Content-Length: \(body.unicodeScalars.count)\r\n\r\n\(body)"
}

/// Returns a redirect in the form in which it is sent, which stays fresh for a minute.
package func redirect(_ status: String, to location: String) -> String {
  response(status: "\(status) Redirect", "Location: \(location)", "Cache-Control: max-age=60", body: "moved")
}
