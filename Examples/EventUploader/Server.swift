import FlyingFox
import FlyingSocks
import Foundation

/// A local HTTP server that calls a closure for the answer to each request.
final class Server: Sendable {
  /// The URL of the server.
  let url: String

  private let server: HTTPServer
  private let running: Task<Void, any Error>

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - silence: How long the connection of a request without an answer stays open. It must be longer than the client
  ///     waits, and less than the 15 seconds after which FlyingFox answers itself. Defaults to 5 seconds.
  ///   - answer: A closure that receives the body of each request and returns the answer.
  /// - Throws: The error of listening.
  init(silence: Duration = .seconds(5), answer: @escaping @Sendable (Data) -> Collector.Answer) async throws {
    let server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: 0), logger: .disabled)
    await server.appendRoute("POST /events") { request in
      let answer = answer(try await request.bodyData)
      if answer == .silence { try await Task.sleep(for: silence) }
      return Self.response(answer)
    }
    let running = Task { try await server.run() }
    do {
      try await server.waitUntilListening()
    } catch {
      running.cancel()
      // If the server could not listen, this throws the reason.
      do { try await running.value } catch is CancellationError {}
      throw error
    }
    guard case .ip4(let address, let port) = await server.listeningAddress else { throw SocketError.unsupportedAddress }
    url = "http://\(address):\(port)/events"
    self.server = server
    self.running = running
  }

  /// Stops accepting connections, ends the running requests, and returns when all of them have ended.
  func stop() async {
    await server.stop()
    // This throws an error when the server was stopped.
    _ = await running.result
  }

  private static func response(_ answer: Collector.Answer) -> HTTPResponse {
    // One request for each connection, because clients may resend a request that fails on a reused connection.
    let headers: HTTPHeaders = [.connection: "close"]
    return switch answer {
    case .status(let status):
      HTTPResponse(statusCode: HTTPStatusCode(status, phrase: ""), headers: headers)
    case .cut, .silence:
      // Not a success, even for a client that does not read the body.
      HTTPResponse(
        statusCode: .internalServerError, headers: headers, body: HTTPBodySequence(from: CutBody(), count: 1))
    }
  }
}
