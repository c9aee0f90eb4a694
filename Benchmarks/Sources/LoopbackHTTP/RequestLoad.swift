internal import NIOCore
internal import NIOPosix

/// Requests to a server on loopback, over several connections at the same time.
///
/// It does little more than reading and writing, so most of the time is the server's. A client for programs takes
/// longer for a request than the servers that are compared.
public enum RequestLoad {
  /// Sends requests, each after the response to the one before on its connection, and receives all responses.
  ///
  /// - Parameters:
  ///   - count: The number of requests.
  ///   - connectionCount: The number of connections.
  ///   - port: The port of the server.
  ///   - path: The path of the requests.
  ///   - bodyLength: The number of bytes of the body of each response.
  /// - Throws: ``UnexpectedResponse``; the errors of the connections.
  @concurrent
  public static func send(
    _ count: Int, over connectionCount: Int, to port: Int, path: String, bodyLength: Int
  ) async throws {
    let request = ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    try await withThrowingDiscardingTaskGroup { group in
      for _ in 0..<connectionCount {
        group.addTask {
          let end = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
              channel.eventLoop.makeCompletedFuture {
                let end = channel.eventLoop.makePromise(of: Void.self)
                try channel.pipeline.syncOperations.addHandler(
                  Requests(of: request, count: count / connectionCount, bodyLength: bodyLength, end: end))
                return end.futureResult
              }
            }
          try await end.get()
        }
      }
    }
  }

  /// The error of a response other than 200 with a whole body.
  public struct UnexpectedResponse: Error {}
}

/// A channel handler that sends a request again and again.
private final class Requests: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let request: ByteBuffer
  private let bodyLength: Int
  private let end: EventLoopPromise<Void>
  private var remaining: Int
  private var received = ByteBuffer()

  init(of request: ByteBuffer, count: Int, bodyLength: Int, end: EventLoopPromise<Void>) {
    self.request = request
    self.bodyLength = bodyLength
    self.end = end
    remaining = count
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(Self.wrapOutboundOut(request), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = Self.unwrapInboundIn(data)
    received.writeBuffer(&bytes)
    let view = received.readableBytesView
    guard let head = view.firstRange(of: "\r\n\r\n".utf8), view.endIndex - head.upperBound >= bodyLength else { return }
    guard view.starts(with: "HTTP/1.1 200 ".utf8) else {
      context.close(promise: nil)
      return
    }
    received.clear()
    remaining -= 1
    if remaining > 0 {
      context.writeAndFlush(Self.wrapOutboundOut(request), promise: nil)
    } else {
      end.succeed()
      context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    // No effect after the last response.
    end.fail(RequestLoad.UnexpectedResponse())
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end.fail(error)
    context.close(promise: nil)
  }
}
