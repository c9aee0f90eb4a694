import Foundation
import HummingbirdCore
import Larder
import LarderHTTPCache
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

@testable import CachingProxy

/// A server on loopback that sends the bytes that a test wants, whatever they are.
final class TestOrigin: Sendable {
  /// The end of an answer.
  enum Ending: Sendable {
    case keep
    case close
  }

  let port: Int

  private let state: State
  private let serving: Task<Void, any Error>

  private final class State: Sendable {
    let requests = Mutex<[Message]>([])
    let connectionCount = Mutex(0)
  }

  /// The requests received so far.
  var requests: [Message] { state.requests.withLock { $0 } }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - port: The port; 0, the default, for any.
  ///   - readsBodies: Whether the bodies of requests are read. Defaults to true.
  ///   - answer: A closure that answers a request.
  init(
    port: Int = 0, readsBodies: Bool = true, answer: @escaping @Sendable (Message, Wire) async throws -> Ending
  ) async throws {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .bind(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    self.port = server.channel.localAddress?.port ?? 0
    let state = State()
    self.state = state
    serving = Task {
      try await withThrowingDiscardingTaskGroup { group in
        try await server.executeThenClose { connections in
          for try await connection in connections {
            group.addTask { await Self.serve(connection, state, readsBodies: readsBodies, answer) }
          }
        }
      }
    }
  }

  /// Closes the port and all connections.
  func stop() async {
    serving.cancel()
    _ = await serving.result
  }

  private static func serve(
    _ connection: NIOAsyncChannel<ByteBuffer, ByteBuffer>, _ state: State, readsBodies: Bool,
    _ answer: @Sendable (Message, Wire) async throws -> Ending
  ) async {
    let number = state.connectionCount.withLock { count in
      defer { count += 1 }
      return count
    }
    do {
      try await connection.executeThenClose { inbound, outbound in
        var wire = Wire(inbound, outbound)
        while var request = try await wire.readRequest(readsBody: readsBodies) {
          request.connection = number
          state.requests.withLock { $0.append(request) }
          guard try await answer(request, wire) == .keep else { return }
        }
      }
    } catch {
      // The proxy closed the connection; the tests see that at the proxy.
    }
  }
}

/// A proxy on loopback, which runs while a closure does.
struct TestProxy: Sendable {
  let port: Int

  /// Runs a proxy in front of an origin.
  ///
  /// - Parameters:
  ///   - originPort: The port of the origin.
  ///   - timeout: How long the proxy waits for the origin.
  ///   - store: The store of the cache.
  ///   - now: The clock of the cache.
  ///   - body: A closure that sends requests.
  static func run(
    originPort: Int, timeout: Duration = .seconds(30), store: some DataStore<[UInt8]> = MemoryStore<[UInt8]>(),
    now: @escaping @Sendable () -> Date = { Date.now }, _ body: (TestProxy) async throws -> Void
  ) async throws {
    var configuration = HTTPCacheConfiguration.shared
    configuration.now = now
    let cache = try await HTTPCache(store, configuration: configuration)
    let proxy = Proxy(origin: Origin(host: "127.0.0.1", port: originPort, timeout: timeout), cache: cache)
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

  /// Sends a request over a connection of its own, and returns the response.
  ///
  /// - Parameters:
  ///   - start: The method and the request target.
  ///   - fields: Further lines of the head, each with its line break.
  ///   - body: The body, whose length is then sent too.
  func exchange(_ start: String, fields: String = "", body: String = "") async throws -> Message {
    let length = body.isEmpty ? "" : "Content-Length: \(body.unicodeScalars.count)\r\n"
    let response = try await Wire.connect(to: port) { wire in
      try await wire.send("\(start) HTTP/1.1\r\nHost: proxy\r\n\(fields)\(length)\r\n\(body)")
      return try await wire.readResponse(hasBody: !start.hasPrefix("HEAD"))
    }
    guard let response else { throw NoResponse() }
    return response
  }

  struct NoResponse: Error {}
}
