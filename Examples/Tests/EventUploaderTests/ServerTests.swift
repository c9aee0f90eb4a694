import Foundation
import Larder
import Testing

@testable import EventUploader

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The server")
struct ServerTests {
  private static let batch = EventBatch(events: [Event(session: "s", task: 0, number: 0)])

  /// An endpoint with a timeout longer than any test.
  private func endpoint(_ server: Server) throws -> HTTPEndpoint {
    HTTPEndpoint(url: try #require(URL(string: server.url)), patience: 50)
  }

  @Test(arguments: [Collector.Answer.status(503), .cut, .silence])
  func `Only a successful answer accepts a batch, and no batch is requested twice`(failure: Collector.Answer)
    async throws
  {
    let bodies = Locked<[Data]>([])
    let server = try await Server(silence: .milliseconds(1)) { body in
      bodies.withLock { bodies in
        bodies.append(body)
        return bodies.count == 2 ? failure : .status(204)
      }
    }
    let endpoint = try endpoint(server)
    try await endpoint.send(Self.batch)
    let error = await #expect(throws: (any Error).self) { try await endpoint.send(Self.batch) }
    switch failure {
    case .status(let status): #expect((error as? HTTPEndpoint.Refusal)?.status == status)
    case .cut, .silence: #expect(error is URLError, "\(String(describing: error))")
    }
    try await endpoint.send(Self.batch)
    await server.stop()
    let batches = try bodies.withLock { try $0.map { try JSONDecoder().decode(EventBatch.self, from: $0) } }
    #expect(batches == [Self.batch, Self.batch, Self.batch])
  }

  @Test func `Silence lasts longer than a client waits`() async throws {
    let server = try await Server { _ in .silence }
    let endpoint = HTTPEndpoint(url: try #require(URL(string: server.url)))
    let error = await #expect(throws: URLError.self) { try await endpoint.send(Self.batch) }
    #expect(error?.code == .timedOut)
    await server.stop()
  }

  @Test(arguments: [0, 50, 5_000])
  func `A batch of any length arrives unchanged`(count: Int) async throws {
    let body = Locked(Data())
    let server = try await Server { received in
      body.withLock { $0 = received }
      return .status(204)
    }
    let batch = EventBatch(events: (0..<count).map { Event(session: "s", task: 0, number: $0) })
    try await endpoint(server).send(batch)
    await server.stop()
    #expect(try JSONDecoder().decode(EventBatch.self, from: body.withLock { $0 }) == batch)
  }

  @Test("Stopping the server ends running requests", .timeLimit(.minutes(5)))
  func stops() async throws {
    let silence = Duration.seconds(45)
    let (requests, continuation) = AsyncStream<Void>.makeStream()
    let start = ContinuousClock.now
    let server = try await Server(silence: silence) { _ in
      continuation.finish()
      return .silence
    }
    let endpoint = try endpoint(server)
    let sending = Task { try await endpoint.send(Self.batch) }
    for await _ in requests {}
    await server.stop()
    await #expect(throws: (any Error).self) { try await sending.value }
    #expect(start.duration(to: .now) < silence)
    // The server is gone.
    await #expect(throws: URLError.self) { try await endpoint.send(Self.batch) }
  }
}
