import FlyingFox
import FlyingSocks
import Foundation

/// An HTTP server on this machine: asks for each request what to answer, and does that to the connection.
final class Server: Sendable {
  /// Where it is.
  let url: String

  private let server: HTTPServer
  private let running: Task<Void, any Error>

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - silence: How long the connection of a request that gets no answer stays open: longer than the client waits, and
  ///     less than the 15 seconds after which FlyingFox answers itself. 5 seconds unless given.
  ///   - answer: Gets the body of each request, and says what is done.
  /// - Throws: What listening throws.
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
      // Where it could not listen, this says why.
      do { try await running.value } catch is CancellationError {}
      throw error
    }
    guard case .ip4(let address, let port) = await server.listeningAddress else { throw SocketError.unsupportedAddress }
    url = "http://\(address):\(port)/events"
    self.server = server
    self.running = running
  }

  /// Stops taking connections, ends those that go on, and returns when all of them have ended.
  func stop() async {
    await server.stop()
    // An error, which says that it was stopped.
    _ = await running.result
  }

  private static func response(_ answer: Collector.Answer) -> HTTPResponse {
    // One request to a connection: what is cut off on one that was used before, a client may send again unasked.
    let headers: HTTPHeaders = [.connection: "close"]
    return switch answer {
    case .status(let status):
      HTTPResponse(statusCode: HTTPStatusCode(status, phrase: ""), headers: headers)
    case .cut, .silence:
      // No success, even for a client that does not miss the body.
      HTTPResponse(
        statusCode: .internalServerError, headers: headers, body: HTTPBodySequence(from: CutBody(), count: 1))
    }
  }
}
