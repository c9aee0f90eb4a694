import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix

/// A connection to the origin, for one exchange at a time.
final class OriginConnection: Sendable {
  private let channel: any Channel
  private let reader: NIOLoopBound<PartReader>

  /// Connects to the origin.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait for the connection, and for each part of a response.
  /// - Throws: The error of connecting.
  init(host: String, port: Int, timeout: TimeAmount) async throws {
    (channel, reader) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(timeout)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .connect(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          let bytes = HeadBytes()
          let reader = PartReader(bytes: bytes)
          var encoding = HTTPRequestEncoder.Configuration()
          encoding.automaticallySetFramingHeaders = false
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(IdleStateHandler(allTimeout: timeout))
          try pipeline.addHandler(bytes)
          try pipeline.addHandler(HTTPRequestEncoder(configuration: encoding))
          try pipeline.addHandler(
            ByteToMessageHandler(
              HTTPResponseDecoder(
                informationalResponseStrategy: .forward, limitConfiguration: ClientChannel.headLimits)))
          try pipeline.addHandler(reader)
          return (channel, NIOLoopBound(reader, eventLoop: channel.eventLoop))
        }
      }
  }

  /// A Boolean value that indicates whether the connection can be used for another exchange.
  var isOpen: Bool { channel.isActive }

  /// Closes the connection.
  func close() {
    channel.close(promise: nil)
  }

  /// Sends parts of a request together, and waits until the socket has taken them.
  ///
  /// - Throws: ``OriginError/closed``; the error of converting the head.
  func send(_ parts: HTTPRequestPart...) async throws {
    let parts: [HTTPClientRequestPart] = try parts.map { part in
      switch part {
      case .head(let head): .head(try HTTPRequestHead(head))
      case .body(let buffer): .body(.byteBuffer(buffer))
      case .end: .end(nil)
      }
    }
    guard let last = parts.last else { return }
    for part in parts.dropLast() { channel.write(part, promise: nil) }
    do {
      try await channel.writeAndFlush(last).get()
    } catch {
      throw OriginError.closed
    }
  }

  /// Returns the next part of the response.
  ///
  /// Nothing is read from the socket until a part is asked for.
  ///
  /// - Throws: ``OriginError``.
  func nextPart() async throws -> HTTPResponsePart {
    try await withTaskCancellationHandler {
      let reader = reader
      let eventLoop = channel.eventLoop
      return try await eventLoop.flatSubmit { reader.value.nextPart(on: eventLoop) }.get()
    } onCancel: {
      close()
    }
  }

  /// Watches for the end of the connection while no exchange uses it.
  func becomeIdle() {
    let reader = reader
    channel.eventLoop.execute { reader.value.becomeIdle() }
  }
}

/// A channel handler that reads from the socket when a part of a response is asked for, and at no other time.
private final class PartReader: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  private let bytes: HeadBytes
  private var context: ChannelHandlerContext?
  private var parts = CircularBuffer<HTTPResponsePart>()
  private var waiter: EventLoopPromise<HTTPResponsePart>?
  private var failure = OriginError.closed
  private var isIdle = false

  init(bytes: HeadBytes) {
    self.bytes = bytes
  }

  func nextPart(on eventLoop: any EventLoop) -> EventLoopFuture<HTTPResponsePart> {
    if let part = parts.popFirst() { return eventLoop.makeSucceededFuture(part) }
    guard let context, context.channel.isActive else { return eventLoop.makeFailedFuture(failure) }
    let waiter = eventLoop.makePromise(of: HTTPResponsePart.self)
    self.waiter = waiter
    context.read()
    return waiter.futureResult
  }

  func becomeIdle() {
    isIdle = true
    context?.read()
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .head = Self.unwrapOutboundIn(data) {
      bytes.isWritingHead = true
      isIdle = false
    }
    context.write(data, promise: promise)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch Self.unwrapInboundIn(data) {
    case .head(var head):
      // Another head follows an interim response. Nothing that this reader expects follows a body.
      if head.status.code >= 200 { bytes.position = .body(remaining: .max) }
      // `HTTPResponse` does not express the version.
      if head.version == .http1_0 { head.headers.replaceOrAdd(name: "Connection", value: "close") }
      do {
        receive(.head(try HTTPResponse(head)))
      } catch {
        errorCaught(context: context, error: error)
      }
    case .body(let buffer): receive(.body(buffer))
    case .end:
      bytes.position = .head
      receive(.end(nil))
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if waiter != nil { context.read() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // A connection whose response waits for a slow client is not idle.
    guard event is IdleStateHandler.IdleStateEvent, parts.isEmpty, waiter != nil || isIdle else { return }
    fail(.timedOut, context)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    case HTTPParserError.invalidEOFState, is IOError: fail(.closed, context)
    default: fail(.malformedResponse, context)
    }
  }

  private func fail(_ failure: OriginError, _ context: ChannelHandlerContext) {
    self.failure = failure
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    waiter?.fail(failure)
    waiter = nil
  }

  private func receive(_ part: HTTPResponsePart) {
    if let waiter {
      self.waiter = nil
      waiter.succeed(part)
    } else {
      parts.append(part)
    }
  }
}
