import FlyingFox
import FlyingSocks
import Foundation
import Larder

/// A slow server whose answers a cache can reuse in different ways.
final class DemoOrigin: Sendable {
  /// The requests that came through the proxy, and the bytes of the bodies that they got.
  struct Load: Sendable {
    var requests = 0
    var bytes = 0
  }

  /// The URL of the server, without a path.
  let url: String

  private let server: HTTPServer
  private let running: Task<Void, any Error>
  private let state: State

  private final class State: Sendable {
    let load = Locked(Load())
    let isFailing = Locked(false)
  }

  /// Starts the server on a free port.
  ///
  /// - Throws: The error of listening.
  init() async throws {
    let server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: 0), logger: .disabled)
    let state = State()
    await server.appendRoute("*") { try await Self.answer(to: $0, state) }
    let running = Task { try await server.run() }
    do {
      try await server.waitUntilListening()
    } catch {
      running.cancel()
      throw error
    }
    guard case .ip4(let address, let port) = await server.listeningAddress else { throw SocketError.unsupportedAddress }
    url = "http://\(address):\(port)"
    (self.server, self.running, self.state) = (server, running, state)
  }

  /// The load that the proxy has put on the server so far.
  var load: Load { state.load.withLock { $0 } }

  /// From now on, the server answers 503 to everything.
  func fail() {
    state.isFailing.withLock { $0 = true }
  }

  /// Stops the server, after which no connection is accepted.
  func stop() async {
    await server.stop()
    // This throws an error when the server was stopped.
    _ = await running.result
  }

  // MARK: Answers

  private static func answer(to request: HTTPRequest, _ state: State) async throws -> HTTPResponse {
    var response =
      state.isFailing.withLock { $0 }
      ? HTTPResponse(statusCode: .serviceUnavailable) : try await page(for: request)
    // The client of the demonstration also asks the server without the proxy, to compare.
    if request.headers[HTTPHeader("Via")] != nil {
      let count = try await response.bodyData.count
      state.load.withLock { load in
        load.requests += 1
        load.bytes += count
      }
    }
    // FlyingFox would wait up to 15 seconds for the next request on a connection before it stops.
    response.headers[.connection] = "close"
    return response
  }

  private static func page(for request: HTTPRequest) async throws -> HTTPResponse {
    switch request.path {
    case "/report":
      try await Task.sleep(for: .milliseconds(400))
      return page(200_000, "max-age=60")
    case "/slow":
      // Long enough for all the requests that arrive together, also on a busy machine.
      try await Task.sleep(for: .milliseconds(1_500))
      return page(100_000, "max-age=60")
    case "/prices":
      try await Task.sleep(for: .milliseconds(200))
      let tag = "\"prices-1\""
      let headers: HTTPHeaders = [HTTPHeader("ETag"): tag]
      guard request.headers[HTTPHeader("If-None-Match")] != tag else {
        return HTTPResponse(statusCode: .notModified, headers: headers)
      }
      return page(300_000, "max-age=1", ["ETag": tag])
    case "/news":
      try await Task.sleep(for: .milliseconds(400))
      return page(50_000, "max-age=1, stale-while-revalidate=60")
    case "/shop":
      try await Task.sleep(for: .milliseconds(200))
      return page(50_000, "max-age=1, stale-if-error=60")
    case "/page":
      try await Task.sleep(for: .milliseconds(200))
      let language = request.headers[HTTPHeader("Accept-Language")] ?? "en"
      return page(20_000, "max-age=60", ["Vary": "Accept-Language", "Content-Language": language])
    case "/film":
      try await Task.sleep(for: .milliseconds(200))
      return film(range: request.headers[HTTPHeader("Range")])
    case "/account":
      try await Task.sleep(for: .milliseconds(100))
      return request.method == .POST ? HTTPResponse(statusCode: .noContent) : page(1_000, "private, max-age=60")
    case "/user":
      try await Task.sleep(for: .milliseconds(100))
      return request.method == .POST ? HTTPResponse(statusCode: .noContent) : page(1_000, "max-age=60")
    default: return HTTPResponse(statusCode: .notFound)
    }
  }

  private static func page(_ size: Int, _ control: String, _ fields: [String: String] = [:]) -> HTTPResponse {
    var headers: HTTPHeaders = [HTTPHeader("Cache-Control"): control]
    for (name, value) in fields { headers[HTTPHeader(name)] = value }
    return HTTPResponse(statusCode: .ok, headers: headers, body: bytes(0..<size))
  }

  /// Returns a film of 2 MB, or the bytes of one range of it.
  private static func film(range: String?) -> HTTPResponse {
    let size = 2_000_000
    let bounds = range?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) } ?? []
    let part = bounds.first.map { $0..<(bounds.count > 1 ? min(bounds[1] + 1, size) : size) }
    var headers: HTTPHeaders = [HTTPHeader("Cache-Control"): "max-age=60", HTTPHeader("ETag"): "\"film\""]
    guard let part else { return HTTPResponse(statusCode: .ok, headers: headers, body: bytes(0..<size)) }
    headers[HTTPHeader("Content-Range")] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"
    return HTTPResponse(statusCode: .partialContent, headers: headers, body: bytes(part))
  }

  /// Returns bytes that differ from place to place, so a mix-up shows.
  private static func bytes(_ range: Range<Int>) -> Data {
    Data(range.map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
  }
}
