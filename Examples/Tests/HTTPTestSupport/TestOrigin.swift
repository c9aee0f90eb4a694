import Larder
import NIOCore
import NIOPosix

/// A server on loopback that sends the bytes that a test wants, whatever they are.
package final class TestOrigin: Sendable {
  /// The end of an answer.
  package enum Ending: Sendable {
    case keep
    case close
  }

  package let port: Int

  private let state: State
  private let serving: Task<Void, any Error>

  private final class State: Sendable {
    let requests = Locked<[Message]>([])
    let connectionCount = Locked(0)
  }

  /// The requests received so far.
  package var requests: [Message] { state.requests.withLock { $0 } }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - port: The port; 0, the default, for any.
  ///   - readsBodies: A Boolean value that indicates whether the bodies of requests are read. Defaults to true.
  ///   - answer: A closure that answers a request.
  package init(
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
  package func stop() async {
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
