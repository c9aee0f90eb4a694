import HTTPTestSupport
import Foundation
import Larder
import Testing

@testable import CachingProxy

@Suite("Caching", .timeLimit(.minutes(5)))
struct CachingTests {
  /// A clock of the cache that a test sets.
  private final class Clock: Sendable {
    private let offset = Locked(0.0)

    var now: Date { Date.now.addingTimeInterval(offset.withLock { $0 }) }

    func advance(by seconds: Double) {
      offset.withLock { $0 += seconds }
    }
  }

  private static func response(_ fields: String, body: String) -> String {
    "HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(body.unicodeScalars.count)\r\n\r\n\(body)"
  }

  @Test("A fresh response is forwarded once, and answers GET and HEAD from the store")
  func hit() async throws {
    let origin = try await TestOrigin { _, wire in
      try await wire.send(Self.response("Cache-Control: max-age=60\r\nX-Text: \u{FC}\r\n", body: "a\u{FF}b"))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      for _ in 1...3 {
        let response = try await proxy.exchange("GET /?b=2&a=1")
        #expect(response.body == "a\u{FF}b" && response.isComplete)
        #expect(response["X-Text"] == ["\u{FC}"])
      }
      let head = try await proxy.exchange("HEAD /?b=2&a=1")
      #expect(head["Content-Length"] == ["3"])
      #expect(head["Age"].count == 1)
      #expect(head["Cache-Status"].first?.contains("hit") == true)
      #expect(origin.requests.map(\.target) == ["/?b=2&a=1"])
      #expect(try await proxy.exchange("GET /?a=1&b=2")["Age"].isEmpty)
    }
    #expect(origin.requests.count == 2)
    await origin.stop()
  }

  @Test func `A range is answered from the store, and a tag of the client by 304`() async throws {
    let origin = try await TestOrigin { _, wire in
      try await wire.send(Self.response("Cache-Control: max-age=60\r\nETag: \"1\"\r\n", body: "0123456789"))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("GET /").body == "0123456789")
      let part = try await proxy.exchange("GET /", fields: "Range: bytes=2-4\r\n")
      #expect(part.status == 206 && part.body == "234")
      #expect(part["Content-Range"] == ["bytes 2-4/10"])
      let unchanged = try await proxy.exchange("GET /", fields: "If-None-Match: \"1\"\r\n")
      #expect(unchanged.status == 304)
    }
    #expect(origin.requests.count == 1)
    await origin.stop()
  }

  @Test("A stale response is validated, and the request of the client has only the conditions of the cache")
  func validation() async throws {
    let clock = Clock()
    let origin = try await TestOrigin { request, wire in
      let fields = "Cache-Control: max-age=60\r\nETag: \"1\"\r\n"
      guard request["If-None-Match"] == ["\"1\""] else {
        try await wire.send(Self.response(fields, body: "text"))
        return .keep
      }
      try await wire.send("HTTP/1.1 304 Not Modified\r\n\(fields)\r\n")
      return .keep
    }
    try await TestProxy.run(originPort: origin.port, now: { clock.now }) { proxy async throws in
      #expect(try await proxy.exchange("GET /").body == "text")
      clock.advance(by: 100)
      #expect(try await proxy.exchange("GET /").body == "text")
      #expect(try await proxy.exchange("GET /").body == "text")
    }
    #expect(origin.requests.map { $0["If-None-Match"] } == [[], ["\"1\""]])
    // One connection, because a 304 has no body.
    #expect(origin.requests.map(\.connection) == [0, 0])
    await origin.stop()
  }

  @Test
  func `If the origin has stopped, a stale response answers, unless it must be validated; then the answer is 504`()
    async throws
  {
    let clock = Clock()
    let origin = try await TestOrigin { request, wire in
      let directive = request.target == "/strict" ? ", must-revalidate" : ""
      try await wire.send(Self.response("Cache-Control: max-age=60\(directive)\r\n", body: "text"))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port, now: { clock.now }) { proxy async throws in
      for target in ["/", "/strict"] { #expect(try await proxy.exchange("GET \(target)").status == 200) }
      await origin.stop()
      clock.advance(by: 100)
      let stale = try await proxy.exchange("GET /")
      #expect(stale.status == 200 && stale.body == "text")
      #expect(try await proxy.exchange("GET /strict").status == 504)
      #expect(try await proxy.exchange("GET /", fields: "Cache-Control: only-if-cached\r\n").status == 504)
      #expect(try await proxy.exchange("GET /other").status == 502)
    }
  }

  @Test("Clients that ask at the same time share one request to the origin, and its interim responses come to one")
  func collapsing() async throws {
    let origin = try await TestOrigin { _, wire in
      try await Task.sleep(for: .milliseconds(100))
      try await wire.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
      try await wire.send(Self.response("Cache-Control: max-age=60\r\n", body: "text"))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      let interim = try await withThrowingTaskGroup { group in
        for _ in 1...50 {
          group.addTask {
            let response = try await proxy.exchange("GET /")
            #expect(response.body == "text")
            return response.interim.count
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(interim == origin.requests.count)
    }
    #expect(origin.requests.count == 1)
    await origin.stop()
  }

  @Test("A request that changes something invalidates what is stored")
  func invalidation() async throws {
    let origin = try await TestOrigin { request, wire in
      try await wire.send(Self.response("Cache-Control: max-age=60\r\n", body: request.method))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      for method in ["GET", "GET", "POST", "GET"] { _ = try await proxy.exchange("\(method) /", body: "") }
    }
    #expect(origin.requests.map(\.method) == ["GET", "POST", "GET"])
    await origin.stop()
  }

  @Test func `The response to POST answers later GETs if it says that it is the representation of its URL`()
    async throws
  {
    let origin = try await TestOrigin { request, wire in
      let fields = "Cache-Control: max-age=60\r\nContent-Location: \(request.target)\r\n"
      try await wire.send(Self.response(fields, body: request.method))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("GET /").body == "GET")
      #expect(try await proxy.exchange("POST /", body: "text").body == "POST")
      #expect(try await proxy.exchange("GET /").body == "POST")
    }
    #expect(origin.requests.map(\.method) == ["GET", "POST"])
    await origin.stop()
  }

  @Test func `A store that fails never fails a request`() async throws {
    let store = MemoryStore<[UInt8]>()
    let origin = try await TestOrigin { _, wire in
      try await wire.send(Self.response("Cache-Control: max-age=60\r\n", body: "text"))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port, store: store) { proxy async throws in
      #expect(try await proxy.exchange("GET /").body == "text")
      store.close()
      for _ in 1...2 { #expect(try await proxy.exchange("GET /").body == "text") }
    }
    #expect(origin.requests.count == 3)
    await origin.stop()
  }
}
