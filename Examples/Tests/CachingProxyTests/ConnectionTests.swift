import HTTPTestSupport
import Larder
import NIOCore
import Testing

@testable import CachingProxy

@Suite("Connections to the origin", .timeLimit(.minutes(5)))
struct ConnectionTests {
  private static let ok = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok"

  @Test func `Requests that follow each other share a connection, unless the origin wants to close it`() async throws {
    let origin = try await TestOrigin { request, wire in
      guard request.target == "/last" else {
        try await wire.send(Self.ok)
        return .keep
      }
      try await wire.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      for target in ["/1", "/2", "/last", "/4", "/5"] {
        #expect(try await proxy.exchange("GET \(target)", untilClosed: true).body == "ok")
      }
      #expect(try await proxy.exchange("POST /6", body: "text").body == "ok")
      #expect(origin.requests.map(\.connection) == [0, 0, 0, 1, 1, 1])
    }
    await origin.stop()
  }

  @Test("Requests at the same time have a connection each")
  func concurrent() async throws {
    let origin = try await TestOrigin { request, wire in
      try await wire.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\n\(request["X"][0])")
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      try await withThrowingTaskGroup { group in
        for number in 1000..<1100 {
          group.addTask {
            let response = try await proxy.exchange("GET /\(number)", fields: "X: \(number)\r\n")
            #expect(response.body == "\(number)")
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(origin.requests.count == 100)
    await origin.stop()
  }

  @Test("A safe request is sent again once if the origin closes a connection that was used before", arguments: [1, 2])
  func replaced(closings: Int) async throws {
    let count = Locked(0)
    let origin = try await TestOrigin { request, wire in
      let isClosing =
        request.target == "/closed"
        && count.withLock { count in
          count += 1
          return count <= closings
        }
      if isClosing { return .close }
      try await wire.send(Self.ok)
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("GET /", untilClosed: true).status == 200)
      #expect(try await proxy.exchange("GET /closed").status == (closings == 1 ? 200 : 502))
    }
    #expect(origin.requests.map(\.connection) == [0, 0, 1])
    await origin.stop()
  }

  @Test(arguments: ["", "text"])
  func `A request that changes something is not sent again`(body: String) async throws {
    let origin = try await TestOrigin { request, wire in
      if request.method == "POST" { return .close }
      try await wire.send(Self.ok)
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("GET /", untilClosed: true).status == 200)
      #expect(try await proxy.exchange("POST /", body: body).status == 502)
    }
    #expect(origin.requests.map(\.method) == ["GET", "POST"])
    await origin.stop()
  }

  @Test(
    "A malformed response is an error of the gateway",
    arguments: [
      "HTTP/1.1 2x0 no\r\n\r\n", "hello", "HTTP/3.0 200 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ])
  func malformed(answer: String) async throws {
    let origin = try await TestOrigin { _, wire in
      try await wire.send(answer)
      return .close
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("GET /").status == 502)
    }
    await origin.stop()
  }

  @Test("An origin that does not listen is an error of the gateway")
  func unreachable() async throws {
    let origin = try await TestOrigin { _, _ in .close }
    await origin.stop()
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      let response = try await proxy.exchange("GET /")
      #expect(response.status == 502)
      #expect(response["Content-Type"] == ["text/plain; charset=utf-8"])
      #expect(try await proxy.exchange("HEAD /").status == 502)
    }
  }

  @Test("An origin that does not answer in time is a timeout of the gateway")
  func silent() async throws {
    let origin = try await TestOrigin { _, wire in
      var wire = wire
      _ = try await wire.readSome()
      return .close
    }
    try await TestProxy.run(originPort: origin.port, timeout: .seconds(1)) { proxy async throws in
      #expect(try await proxy.exchange("GET /").status == 504)
    }
    await origin.stop()
  }

  @Test func `A request body is forwarded as it arrives, with the framing that the client chose`() async throws {
    let origin = try await TestOrigin { request, wire in
      try await wire.send("HTTP/1.1 200 OK\r\nContent-Length: \(request.body.count)\r\n\r\n\(request.body)")
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("POST /", body: "text").body == "text")
      let chunked = try await Wire.connect(to: proxy.port) { wire in
        try await wire.send("PUT / HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        try await wire.send("2\r\nde\r\n0\r\n\r\n")
        return try await wire.readResponse()
      }
      #expect(chunked?.body == "abcde")
      #expect(try await proxy.exchange("POST /", fields: "Content-Length: 0\r\n").body == "")
    }
    #expect(origin.requests.map { $0["Content-Length"] } == [["4"], [], ["0"]])
    #expect(origin.requests.map { $0["Transfer-Encoding"] } == [[], ["chunked"], []])
    await origin.stop()
  }

  @Test(arguments: ["Content-Length: 5\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"])
  func `A request body that the client cut short does not look whole to the origin`(rest: String) async throws {
    let origin = try await TestOrigin { request, wire in
      try await wire.send(Self.ok)
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      try await Wire.connect(to: proxy.port) { wire in
        try await wire.send("POST / HTTP/1.1\r\nHost: proxy\r\n\(rest)")
      }
      while origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    }
    #expect(origin.requests.map(\.isComplete) == [false])
    await origin.stop()
  }

  @Test func `A response that comes before the end of the request is forwarded`() async throws {
    let origin = try await TestOrigin(readsBodies: false) { _, wire in
      try await wire.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
      return .close
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      let response = try await Wire.connect(to: proxy.port) { wire in
        try await wire.send("POST / HTTP/1.1\r\nHost: proxy\r\nContent-Length: 1000\r\n\r\nbegin")
        return try await wire.readResponse()
      }
      #expect(response?.status == 413)
    }
    await origin.stop()
  }

  @Test func `A large response is read no faster than the client takes it`() async throws {
    let sent = Locked(0)
    let chunk = String(repeating: "x", count: 1 << 16)
    let total = 1 << 28
    let origin = try await TestOrigin { _, wire in
      try await wire.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: \(total)\r\n\r\n")
      while sent.withLock({ $0 }) < total {
        try await wire.send(chunk)
        sent.withLock { $0 += chunk.count }
      }
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      try await Wire.connect(to: proxy.port) { wire in
        try await wire.send("GET / HTTP/1.1\r\nHost: proxy\r\n\r\n")
        _ = try await wire.readSome()
        // The origin stops when the buffers between it and this client are full.
        var last = -1
        while sent.withLock({ $0 }) != last {
          last = sent.withLock { $0 }
          try await Task.sleep(for: .milliseconds(200))
        }
        #expect(last < total / 4, "\(last) bytes were sent to a client that does not read")
      }
    }
    await origin.stop()
  }
}
