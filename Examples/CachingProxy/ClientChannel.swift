import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// The channels of the proxy's clients, for Hummingbird's server.
///
/// They differ from Hummingbird's own HTTP/1 channels in what a proxy needs: the bytes of fields are preserved, and
/// the framing of each response is decided by the proxy. A response to HEAD has no body, whatever its fields say.
struct ClientChannel: HTTPChannelHandler {
  typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

  /// The limits of the heads that the proxy accepts, from clients and from the origin.
  static let headLimits: NIOHTTPDecoderLimitConfiguration = {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderListSize = 80 * 1024
    return limits
  }()

  let responder: Responder

  /// How long a connection without a request stays open.
  let idleTimeout: Duration

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      let pipeline = channel.pipeline.syncOperations
      let bytes = HeadBytes()
      try pipeline.addHandler(bytes)
      var encoding = HTTPResponseEncoder.Configuration()
      encoding.automaticallySetFramingHeaders = false
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
        withEncoderConfiguration: encoding, withDecoderLimitConfiguration: Self.headLimits)
      try pipeline.addHandler(ClientConnection(bytes: bytes))
      try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
      try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: idleTimeout, logger: logger))
      return try NIOAsyncChannel(
        wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    }
  }

  func handle(value channel: Value, logger: Logger) async {
    await handleHTTP(asyncChannel: channel, logger: logger)
  }
}

/// A channel handler for the parts of HTTP/1 that `HTTPRequest` and `HTTPResponse` do not express: the form of the
/// request target, the version, and whether the connection stays open.
private final class ClientConnection: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private struct Exchange {
    var version: HTTPVersion
    /// A Boolean value that indicates whether another request may follow.
    var isKeptAlive: Bool
  }

  /// A request target that the proxy refuses with 400.
  private static let refusedTarget = "refused"

  private let bytes: HeadBytes

  /// The requests received whose responses have not ended; a client may send several without waiting.
  private var exchanges = CircularBuffer<Exchange>()

  init(bytes: HeadBytes) {
    self.bytes = bytes
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var part = Self.unwrapInboundIn(data)
    switch part {
    case .head(var head):
      // If there is no body, the end of the message follows immediately.
      let length = head.headers.first(name: "Content-Length").flatMap { Int($0) } ?? 0
      bytes.position = head.headers.contains(name: "Transfer-Encoding") ? .chunkedBody : .body(remaining: length)
      // A connection of HTTP/1.0 closes after its response, which may have no other end.
      exchanges.append(
        Exchange(version: head.version, isKeptAlive: head.isKeepAlive && head.version != .http1_0))
      head.uri = Self.isValid(head) ? Self.originForm(of: head.uri) : Self.refusedTarget
      part = .head(head)
    case .body: break
    case .end: bytes.position = .head
    }
    context.fireChannelRead(Self.wrapInboundOut(part))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // Without a request, this is Hummingbird's response to what it could not parse.
    var exchange = exchanges.first ?? Exchange(version: .http1_1, isKeptAlive: false)
    switch Self.unwrapOutboundIn(data) {
    case .head(var head):
      if head.status.code < 200 {
        guard exchange.version != .http1_0 else {
          promise?.succeed()
          return
        }
      } else {
        if exchange.version == .http1_0 { head.headers.remove(name: "Transfer-Encoding") }
        if head.headers["Connection"] == ["close"], !exchanges.isEmpty {
          exchange.isKeptAlive = false
          exchanges[exchanges.startIndex] = exchange
        }
        if !exchange.isKeptAlive { head.headers.replaceOrAdd(name: "Connection", value: "close") }
      }
      bytes.isWritingHead = true
      context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
    case .body:
      context.write(data, promise: promise)
    case .end:
      _ = exchanges.popFirst()
      let written = promise ?? context.eventLoop.makePromise()
      context.write(data, promise: written)
      guard !exchange.isKeptAlive else { return }
      let channel = context.channel
      written.futureResult.whenComplete { _ in channel.close(mode: .output, promise: nil) }
    }
  }

  /// Returns whether a head has one host and one framing (RFC 9112, sections 3.2 and 6.1).
  ///
  /// If an origin read them differently, a client could store one response under the URL of another.
  private static func isValid(_ head: HTTPRequestHead) -> Bool {
    let hostCount = head.headers["Host"].count
    guard hostCount == 1 || (hostCount == 0 && head.version == .http1_0) else { return false }
    let codings = head.headers["Transfer-Encoding"]
    return codings.isEmpty
      || (codings.count == 1 && codings[0].lowercased() == "chunked" && head.version != .http1_0)
  }

  /// Returns a request target without the scheme and the authority that the absolute form has, unchanged otherwise.
  private static func originForm(of target: String) -> String {
    guard !target.hasPrefix("/"), let scheme = target.firstRange(of: "://") else { return target }
    let rest = target[scheme.upperBound...]
    guard let start = rest.firstIndex(where: { $0 == "/" || $0 == "?" }) else { return "/" }
    return rest[start] == "/" ? String(rest[start...]) : "/\(rest[start...])"
  }
}
