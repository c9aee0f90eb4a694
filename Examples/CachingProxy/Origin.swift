import HTTPTypes
import Larder
import NIOCore
import NIOHTTPTypes

/// The reason why the origin gave no response, or not a whole one.
enum OriginError: Error {
  /// The origin cannot be reached.
  case unreachable(any Error)
  /// The origin closed the connection.
  case closed
  /// The origin did not send anything for too long.
  case timedOut
  /// The origin sent something that is not a response to the request.
  case malformedResponse
}

/// The error with which the proxy ends the connection of a client.
///
/// Every error that leaves the proxy is this one. The server would take that of another library for its own, such as
/// `HTTPParserError` for a malformed request, and answer it, even in the middle of a body.
struct ConnectionEnded: Error {}

/// A response of the origin, whose body is still on its way.
struct OriginResponse: Sendable {
  var head: HTTPResponse
  var body: OriginBody
}

/// The server behind the proxy, and the open connections to it.
final class Origin: Sendable {
  /// The number of unused connections that stay open.
  private static let idleLimit = 64

  /// The host and port, as in the field `Host`.
  let authority: String

  private let host: String
  private let port: Int
  private let timeout: TimeAmount
  private let idleConnections = Locked<[OriginConnection]>([])

  /// Creates an origin.
  ///
  /// Nothing is connected until a request is sent.
  ///
  /// - Parameters:
  ///   - host: The name or address; an IPv6 address in brackets, or without.
  ///   - port: The port.
  ///   - timeout: How long to wait for a connection, and for each part of a response. Unused connections are closed
  ///     after the same time.
  init(host: String, port: Int, timeout: Duration) {
    let host = String(host.drop { $0 == "[" }.prefix { $0 != "]" })
    let name = host.contains(":") ? "[\(host)]" : host
    authority = port == 80 ? name : "\(name):\(port)"
    self.host = host
    self.port = port
    self.timeout = TimeAmount(timeout)
  }

  /// Sends a request, and returns the response as soon as its head is there.
  ///
  /// A safe request without a body is sent once more, over a new connection, if the origin closed the one it was sent
  /// over: the origin may have done so before it received the request.
  ///
  /// - Parameters:
  ///   - request: The request, without hop-by-hop fields.
  ///   - upload: The body of the request; `nil` if there isn't one.
  ///   - interim: A closure that receives each interim response.
  /// - Throws: ``OriginError``; `CancellationError`.
  func send(
    _ request: HTTPRequest, upload: Upload?, interim: @Sendable (HTTPResponse) -> Void
  ) async throws -> OriginResponse {
    if let connection = takeIdleConnection() {
      do {
        return try await exchange(request, upload: upload, over: connection, interim: interim)
      } catch OriginError.closed where upload == nil && Self.safeMethods.contains(request.method) {}
    }
    let connection: OriginConnection
    do {
      connection = try await OriginConnection(host: host, port: port, timeout: timeout)
    } catch {
      throw OriginError.unreachable(error)
    }
    return try await exchange(request, upload: upload, over: connection, interim: interim)
  }

  private static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options, .trace]

  private func exchange(
    _ request: HTTPRequest, upload: Upload?, over connection: OriginConnection,
    interim: @Sendable (HTTPResponse) -> Void
  ) async throws -> OriginResponse {
    do {
      if let upload {
        try await connection.send(.head(request))
        upload.start(over: connection)
      } else {
        // Together, because the origin may answer and close the connection as soon as it has the head.
        try await connection.send(.head(request), .end(nil))
      }
      while true {
        guard case .head(let head) = try await connection.nextPart(), head.status != .switchingProtocols else {
          throw OriginError.malformedResponse
        }
        guard head.status.kind != .informational else {
          interim(head)
          continue
        }
        // Nothing here decodes these transfer codings, which this proxy does not ask for (RFC 9112, section 7.2). A name
        // that is no coding has encoded nothing.
        let codings = head.headerFields[values: .transferEncoding].joined(separator: ",").lowercased()
        guard !["gzip", "deflate", "compress"].contains(where: codings.contains) else {
          throw OriginError.malformedResponse
        }
        let isReusable = !head.headerFields[values: .connection].contains { $0.lowercased().contains("close") }
        let body = OriginBody(connection: connection) { [self] in
          if isReusable, upload?.isComplete ?? true { keep(connection) } else { connection.close() }
        }
        // A body that the response does not have may never be read.
        if !head.hasBody(inResponseTo: request.method) { for try await _ in body {} }
        return OriginResponse(head: head, body: body)
      }
    } catch {
      connection.close()
      try Task.checkCancellation()
      throw error
    }
  }

  private func takeIdleConnection() -> OriginConnection? {
    idleConnections.withLock { connections in
      while let connection = connections.popLast() {
        if connection.isOpen { return connection }
      }
      return nil
    }
  }

  private func keep(_ connection: OriginConnection) {
    connection.becomeIdle()
    let isKept = idleConnections.withLock { connections in
      connections.removeAll { !$0.isOpen }
      guard connections.count < Self.idleLimit else { return false }
      connections.append(connection)
      return true
    }
    if !isKept { connection.close() }
  }
}

/// The body of a response, read from the connection while it is iterated.
///
/// It can be iterated once. An error means that the body was cut short. The connection can be used again after the
/// last element; if the sequence is released before, the connection is closed.
final class OriginBody: AsyncSequence, Sendable {
  private let connection: OriginConnection
  private let release: @Sendable () -> Void
  private let isAtEnd = Locked(false)

  init(connection: OriginConnection, release: @escaping @Sendable () -> Void) {
    self.connection = connection
    self.release = release
  }

  deinit {
    if !isAtEnd.withLock({ $0 }) { connection.close() }
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    let body: OriginBody

    func next() async throws -> ByteBufferView? {
      try await body.next()
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(body: self)
  }

  private func next() async throws -> ByteBufferView? {
    if isAtEnd.withLock({ $0 }) { return nil }
    switch try await connection.nextPart() {
    case .body(let buffer): return buffer.readableBytesView
    case .end:
      isAtEnd.withLock { $0 = true }
      release()
      return nil
    case .head: throw OriginError.malformedResponse
    }
  }
}
