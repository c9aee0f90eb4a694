public import HTTPTypes
internal import HummingbirdCore
public import LarderHTTPCache
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// A server on loopback, which runs until it is discarded.
///
/// This target compiles the example CachingProxy a second time, because its server and its proxy are internal there.
public final class LoopbackServer: Sendable {
  /// The port on which the server listens.
  public let port: Int

  private let running: Task<Void, any Error>

  deinit {
    running.cancel()
  }

  private init(_ respond: @escaping HTTPChannelHandler.Responder) async throws {
    let (ports, port) = AsyncStream<Int>.makeStream()
    let server = ClientChannel(responder: respond, idleTimeout: .seconds(30))
      .server(
        configuration: ServerConfiguration(address: .hostname("127.0.0.1", port: 0), backlog: 1024),
        onServerRunning: { port.yield($0.localAddress?.port ?? 0) },
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
        logger: Logger(label: "benchmark") { _ in SwiftLogNoOpLogHandler() })
    running = Task {
      defer { port.finish() }
      try await server.run()
    }
    var iterator = ports.makeAsyncIterator()
    self.port = await iterator.next() ?? 0
    // It has ended if it could not listen.
    if self.port == 0 { try await running.value }
  }

  /// Starts a server that answers each request with the same response.
  ///
  /// - Parameters:
  ///   - head: The head, with the length of the body.
  ///   - body: The body.
  /// - Throws: The error of the server if it cannot listen.
  public static func answering(_ head: HTTPResponse, body: [UInt8]) async throws -> LoopbackServer {
    let buffer = ByteBuffer(bytes: body)
    return try await LoopbackServer { _, writer, _ in
      var bodyWriter = try await writer.writeHead(head)
      try await bodyWriter.write(buffer)
      try await bodyWriter.finish(nil)
    }
  }

  /// Starts a proxy with a cache.
  ///
  /// - Parameters:
  ///   - cache: The cache.
  ///   - originPort: The port of the origin, on loopback.
  /// - Throws: The error of the server if it cannot listen.
  public static func proxy(_ cache: HTTPCache, originPort: Int) async throws -> LoopbackServer {
    let origin = Origin(host: "127.0.0.1", port: originPort, timeout: .seconds(30))
    return try await LoopbackServer(Proxy(upstream: .connections(origin, cache)).respond)
  }
}
