import Foundation
import HTTPTestSupport
import HummingbirdCore
import Larder
import LarderHTTPCache
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

@testable import CachingProxy

/// A proxy on loopback, which runs while a closure does.
struct TestProxy: Sendable {
  let port: Int

  /// Runs a proxy in front of an origin.
  ///
  /// - Parameters:
  ///   - originPort: The port of the origin.
  ///   - timeout: How long the proxy waits for the origin.
  ///   - store: The store of the cache.
  ///   - configuration: The configuration of the cache. Defaults to that of a shared one.
  ///   - now: The clock of the cache.
  ///   - body: A closure that sends requests.
  static func run(
    originPort: Int, timeout: Duration = .seconds(30), store: some DataStore<[UInt8]> = MemoryStore<[UInt8]>(),
    configuration: HTTPCacheConfiguration = .shared, now: @escaping @Sendable () -> Date = { Date.now },
    _ body: (TestProxy) async throws -> Void
  ) async throws {
    var configuration = configuration
    configuration.now = now
    let cache = try await HTTPCache(store, configuration: configuration)
    let origin = Origin(host: "127.0.0.1", port: originPort, timeout: timeout)
    try await run(Proxy(upstream: .connections(origin, cache)), body)
  }

  /// Runs a proxy with a cache of a kind in front of an origin.
  static func run(
    _ mode: HTTPCacheMode, originPort: Int, _ body: (TestProxy) async throws -> Void
  ) async throws {
    switch mode {
    case .shared: try await run(originPort: originPort, body)
    case .private: try await runPrivate(originPort: originPort, body)
    }
  }

  /// Runs a proxy with a private cache in a client in front of an origin.
  ///
  /// - Parameters:
  ///   - originPort: The port of the origin.
  ///   - body: A closure that sends requests.
  static func runPrivate(originPort: Int, _ body: (TestProxy) async throws -> Void) async throws {
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: .private)
    let origin = ClientOrigin(authority: "127.0.0.1:\(originPort)", cache: cache, timeout: .seconds(30))
    let result: Result<Void, any Error>
    do {
      result = .success(try await run(Proxy(upstream: .client(origin)), body))
    } catch {
      result = .failure(error)
    }
    try await origin.shutdown()
    try result.get()
  }

  private static func run(_ proxy: Proxy, _ body: (TestProxy) async throws -> Void) async throws {
    let (ports, port) = AsyncStream<Int>.makeStream()
    let server = ClientChannel(responder: proxy.respond, idleTimeout: .seconds(30))
      .server(
        configuration: ServerConfiguration(address: .hostname("127.0.0.1", port: 0)),
        onServerRunning: { port.yield($0.localAddress?.port ?? 0) },
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let running = Task { try await server.run() }
    defer { running.cancel() }
    var iterator = ports.makeAsyncIterator()
    try await body(TestProxy(port: await iterator.next() ?? 0))
  }

  /// Sends text over a connection of its own, and returns everything that the proxy sends until it closes the connection.
  func raw(_ text: String) async throws -> String {
    try await Wire.connect(to: port) { wire in
      try await wire.send(text)
      var received = ""
      while let some = try await wire.readSome() { received += some }
      return received
    }
  }

  /// Sends a request over a connection of its own, and returns the response.
  ///
  /// - Parameters:
  ///   - start: The method and the request target.
  ///   - fields: Further lines of the head, each with its line break.
  ///   - body: The body, whose length is then sent too.
  ///   - waits: A Boolean value that indicates whether the proxy has dealt with the end of the response, and so may use the
  ///     connection to the origin again, when this method returns. Defaults to `false`.
  func exchange(
    _ start: String, fields: String = "", body: String = "", untilClosed waits: Bool = false
  ) async throws -> Message {
    let length = body.isEmpty ? "" : "Content-Length: \(body.unicodeScalars.count)\r\n"
    let response = try await Wire.connect(to: port) { wire in
      let close = waits ? "Connection: close\r\n" : ""
      try await wire.send("\(start) HTTP/1.1\r\nHost: proxy\r\n\(fields)\(close)\(length)\r\n\(body)")
      let response = try await wire.readResponse(hasBody: !start.hasPrefix("HEAD"))
      while waits, try await wire.readSome() != nil {}
      return response
    }
    guard let response else { throw NoResponse() }
    return response
  }

  struct NoResponse: Error {}
}
