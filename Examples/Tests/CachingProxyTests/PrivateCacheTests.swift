import Foundation
import HTTPTestSupport
import Testing

@testable import CachingProxy

@Suite("A private cache", .timeLimit(.minutes(5)))
struct PrivateCacheTests {
  private static let ok = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, private\r\nContent-Length: 2\r\n\r\nok"

  @Test("A response for one user is stored, and fields pass as they are if they are UTF-8")
  func hit() async throws {
    // Two bytes that are one character in UTF-8.
    let text = "\u{C3}\u{BC}"
    let origin = try await TestOrigin { request, wire in
      let echo = "X-Echo: \(request["X-Text"].joined())\r\nContent-Length"
      try await wire.send(Self.ok.replacingOccurrences(of: "Content-Length", with: echo))
      return .close
    }
    try await TestProxy.runPrivate(originPort: origin.port) { proxy async throws in
      for _ in 1...2 {
        let response = try await proxy.exchange("GET /?b=2&a=1", fields: "X-Text: \(text)\r\n")
        #expect(response.body == "ok" && response["X-Echo"] == [text])
      }
    }
    #expect(origin.requests.map(\.target) == ["/?b=2&a=1"])
    #expect(origin.requests.first?["Via"] == ["1.1 CachingProxy"])
    await origin.stop()
  }

  @Test("An upload arrives, and one that the origin does not read does not disturb the next request")
  func uploads() async throws {
    let origin = try await TestOrigin { request, wire in
      try await wire.send(Self.ok)
      return .close
    }
    let deaf = try await TestOrigin(readsBodies: false) { _, wire in
      try await wire.send(Self.ok)
      return .close
    }
    try await TestProxy.runPrivate(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("POST /", body: "text").body == "ok")
    }
    #expect(origin.requests.map(\.body) == ["text"])
    try await TestProxy.runPrivate(originPort: deaf.port) { proxy async throws in
      var answers = 0
      for _ in 1...20 {
        try await Wire.connect(to: proxy.port) { wire in
          for number in 1...3 {
            do {
              try await wire.send("POST / HTTP/1.1\r\nHost: proxy\r\nContent-Length: 4\r\n\r\nte")
              try await wire.send("xt")
            } catch  where number > 1 {
              return
            }
            // Closing a connection with unread data resets it, which can destroy the answer on its way. If the proxy has
            // begun to pass it on, it can only end the connection of the client.
            guard let response = try await wire.readResponse() else { return }
            #expect(response.status == 200 || response.status == 502)
            answers += 1
          }
        }
      }
      #expect(answers >= 20)
    }
    await origin.stop()
    await deaf.stop()
  }

  @Test("An origin that cannot be reached is an error of the gateway")
  func unreachable() async throws {
    let origin = try await TestOrigin { _, _ in .close }
    let port = origin.port
    await origin.stop()
    try await TestProxy.runPrivate(originPort: port) { proxy async throws in
      #expect(try await proxy.exchange("GET /").status == 502)
    }
  }
}
