import Foundation
import Synchronization

/// An HTTP server on this machine: hands the body of each request to a collector, and does to the connection what that says.
///
/// One request to a connection, one thread to a connection: it serves one client.
final class Server: Sendable {
  /// Where it is.
  let url: String

  private let listener: Socket
  private let collector: Collector
  private let connections = Mutex<[UInt64: Socket]>([:])

  /// Starts a server.
  ///
  /// - Parameter collector: Gets the requests.
  init(collector: Collector) throws {
    let (listener, port) = try Socket.listening()
    self.listener = listener
    self.collector = collector
    url = "http://127.0.0.1:\(port)/events"
    Thread.detachNewThread { self.serve() }
  }

  /// Stops taking connections, and ends those that go on.
  func stop() {
    listener.shutDown()
    connections.withLock { connections in
      for connection in connections.values { connection.shutDown() }
    }
  }

  private func serve() {
    var number: UInt64 = 0
    while let connection = listener.accepted() {
      number += 1
      let id = number
      connections.withLock { $0[id] = connection }
      Thread.detachNewThread {
        do {
          try self.answer(connection)
        } catch {
          // The client has gone or talks nonsense: it sees the connection end, and tries again.
        }
        // Closed before it is forgotten, so that nobody shuts down another that got its number.
        self.connections.withLock { connections in
          connections[id] = nil
          connection.close()
        }
      }
    }
    listener.close()
  }

  private func answer(_ connection: Socket) throws {
    guard let body = try body(from: connection) else { return }
    switch collector.take(body) {
    case .status(let status):
      try connection.write("HTTP/1.1 \(status) \r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8)
    case .cut:
      connection.shutDown()
    case .silence:
      // Until the client hangs up.
      while try !connection.read().isEmpty {}
    }
  }

  private func body(from connection: Socket) throws -> Data? {
    var request = HTTPRequest()
    while true {
      let bytes = try connection.read()
      guard !bytes.isEmpty else { return nil }
      if let body = try request.append(bytes) { return body }
      if request.awaitsContinue { try connection.write("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
    }
  }
}
