import Larder
import HTTPTestSupport
import NIOCore
import Testing

@testable import CachingProxy

@Suite("Forwarding", .timeLimit(.minutes(5)))
struct ForwardingTests {
  private static let ok = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok"

  /// Runs a closure with a proxy in front of an origin that always answers the same.
  private func withProxy(
    answering answer: String = ok, ending: TestOrigin.Ending = .keep,
    _ body: (TestProxy, TestOrigin) async throws -> Void
  ) async throws {
    let origin = try await TestOrigin { _, wire in
      try await wire.send(answer)
      return ending
    }
    try await TestProxy.run(originPort: origin.port) { try await body($0, origin) }
    await origin.stop()
  }

  @Test(
    "A request target is forwarded as it came",
    arguments: ["/", "//", "//host/path", "/%2F%2f", "/a/../b/./c", "/?a=b&a=b", "/x?", "/%7Euser?q=%20+{}|^", "*"])
  func targets(target: String) async throws {
    try await withProxy { proxy, origin async throws in
      let response = try await proxy.exchange("\(target == "*" ? "OPTIONS" : "GET") \(target)")
      #expect(response.body == "ok")
      #expect(origin.requests.map(\.target) == [target])
      #expect(origin.requests.map { $0["Host"] } == [["127.0.0.1:\(origin.port)"]])
    }
  }

  @Test(arguments: [("http://proxy", "/"), ("http://proxy?q", "/?q"), ("HTTP://proxy/{a}//b?c", "/{a}//b?c")])
  func `Of the absolute form, the path and the query are forwarded`(target: String, forwarded: String) async throws {
    try await withProxy { proxy, origin async throws in
      #expect(try await proxy.exchange("GET \(target)").status == 200)
      #expect(origin.requests.map(\.target) == [forwarded])
    }
  }

  @Test func `Hop-by-hop fields are forwarded in neither direction, and all others are`() async throws {
    let fields = """
      Connection: Keep-Alive, x-listed\r
      Keep-Alive: timeout=5\r
      Proxy-Connection: keep-alive\r
      TE: trailers\r
      Trailer: X-End\r
      Upgrade: other/1\r
      X-Listed: 1\r
      X-Other: 2\r
      X-Other: 3\r

      """
    let answer = "HTTP/1.1 200 OK\r\n\(fields)Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n"
    try await withProxy(answering: answer) { proxy, origin async throws in
      let response = try await proxy.exchange("GET /", fields: fields)
      #expect(response.body == "ok")
      for message in [response] + origin.requests {
        for name in ["Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade", "X-Listed"] {
          #expect(message[name].isEmpty, "\(name) in \(message.head)")
        }
        #expect(message["X-Other"] == ["2", "3"])
      }
      #expect(origin.requests.map { $0["Via"] } == [["1.1 CachingProxy"]])
    }
  }

  @Test func `Bytes of fields that are not ASCII are preserved`() async throws {
    let value = "\u{FC}\u{C3}\u{BC} \u{80}\u{FF}"
    try await withProxy(answering: "HTTP/1.1 200 OK\r\nX-Text: \(value)\r\nContent-Length: 2\r\n\r\n\u{FF}\u{C3}") {
      proxy, origin async throws in
      let response = try await proxy.exchange("POST /", fields: "X-Text: \(value)\r\n", body: "\u{80}\u{FF}")
      #expect(response["X-Text"] == [value])
      #expect(response.body == "\u{FF}\u{C3}")
      #expect(origin.requests.map { $0["X-Text"] } == [[value]])
      #expect(origin.requests.map(\.body) == ["\u{80}\u{FF}"])
    }
  }

  @Test func `Interim responses are forwarded before the response, except to HTTP or 1.0`() async throws {
    let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </\u{FC}>\r\n\r\n"
    try await withProxy(answering: interim + Self.ok) { proxy, origin async throws in
      let response = try await proxy.exchange("GET /")
      #expect(response.interim.map(\.status) == [102, 103])
      #expect(response.interim.last?["Link"] == ["</\u{FC}>"])
      #expect(response.status == 200 && response.body == "ok")
      let old = try await Wire.connect(to: proxy.port) { wire in
        try await wire.send("GET / HTTP/1.0\r\n\r\n")
        return try await wire.readResponse()
      }
      #expect(old?.interim.isEmpty == true)
      #expect(old?.body == "ok")
    }
  }

  @Test func `A client that waits for 100 (Continue) gets it from the origin`() async throws {
    let origin = try await TestOrigin { request, wire in
      try await wire.send(Self.ok)
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      #expect(try await proxy.exchange("POST /", fields: "Expect: 100-continue\r\n", body: "text").status == 200)
      #expect(origin.requests.map { $0["Expect"] } == [["100-continue"]])
    }
    await origin.stop()
  }

  @Test(arguments: ["Content-Length: 5\r\n\r\nok", "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"])
  func `A body that the origin cut short does not look whole`(rest: String) async throws {
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + rest
    try await withProxy(answering: answer, ending: .close) { proxy, _ async throws in
      for _ in 1...2 {
        let response = try await proxy.exchange("GET /")
        #expect(response.status == 200)
        #expect(!response.isComplete)
      }
    }
  }

  @Test func `A body that ends with the connection is whole`() async throws {
    try await withProxy(answering: "HTTP/1.0 200 OK\r\n\r\nok", ending: .close) { proxy, _ async throws in
      let response = try await proxy.exchange("GET /")
      #expect(response["Transfer-Encoding"] == ["chunked"])
      #expect(response.body == "ok" && response.isComplete)
    }
  }

  @Test func `A response to HTTP or 1.0 is not chunked, and ends with the connection`() async throws {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    try await withProxy(answering: answer) { proxy, _ async throws in
      let response = try await Wire.connect(to: proxy.port) { wire in
        try await wire.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        return try await wire.readResponse()
      }
      #expect(response?["Transfer-Encoding"] == [])
      #expect(response?["Connection"] == ["close"])
      #expect(response?.body == "ok")
    }
  }

  @Test("A response to HEAD has no body, and another one may follow it", arguments: ["Content-Length: 5\r\n", ""])
  func head(field: String) async throws {
    try await withProxy(answering: "HTTP/1.1 200 OK\r\n\(field)\r\n") { proxy, origin async throws in
      try await Wire.connect(to: proxy.port) { wire in
        for _ in 1...2 {
          try await wire.send("HEAD / HTTP/1.1\r\nHost: proxy\r\n\r\n")
          let response = try await wire.readResponse(hasBody: false)
          #expect(response?.startLine == "HTTP/1.1 200 OK")
          #expect(response?["Content-Length"] == (field.isEmpty ? [] : ["5"]))
        }
      }
      #expect(origin.requests.map(\.connection) == [0, 0])
    }
  }

  @Test("Requests that a client sends without waiting are answered in order")
  func pipelining() async throws {
    let origin = try await TestOrigin { request, wire in
      let body = "\(request.target.dropFirst())-\(request["X"][0])"
      try await wire.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\(body)")
      return .keep
    }
    try await TestProxy.run(originPort: origin.port) { proxy async throws in
      try await Wire.connect(to: proxy.port) { wire in
        try await wire.send(
          "POST /a HTTP/1.1\r\nHost: a\r\nX: \u{E4}\r\nContent-Length: 1\r\n\r\n\u{C3}"
            + "GET /b HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n"
            + "GET /c HTTP/1.1\r\nHost: a\r\nX: \u{FC}\r\nConnection: close\r\n\r\n")
        #expect(try await wire.readResponse()?.body == "a-\u{E4}")
        #expect(try await wire.readResponse()?.body == "b-1")
        let last = try await wire.readResponse()
        #expect(last?.body == "c-\u{FC}")
        #expect(last?["Connection"] == ["close"])
        #expect(try await wire.readSome() == nil)
      }
    }
    await origin.stop()
  }
}
