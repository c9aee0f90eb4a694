import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import Testing

@testable import CachingProxy

/// The fields, bodies and errors that must not pass the proxy, with a cache of either kind.
@Suite("Boundaries", .timeLimit(.minutes(5)))
struct BoundaryTests {
  private static let modes: [HTTPCacheMode] = [.shared, .private]
  private static let ok = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok"

  /// Runs a closure with a proxy in front of an origin that always answers the same.
  private func run(
    _ mode: HTTPCacheMode, answering answer: String = ok, ending: TestOrigin.Ending = .keep,
    _ body: (TestProxy, TestOrigin) async throws -> Void
  ) async throws {
    let origin = try await TestOrigin { _, wire in
      try await wire.send(answer)
      return ending
    }
    try await TestProxy.run(mode, originPort: origin.port) { try await body($0, origin) }
    await origin.stop()
  }

  private static let text = String(repeating: "x", count: 960)

  @Test(
    arguments: modes,
    [
      "Content-Length: 1000\r\n\r\n\(text)", "Transfer-Encoding: chunked\r\n\r\n3c0\r\n\(text)\r\n",
      "Transfer-Encoding: chunked\r\n\r\n3c0\r\n\(text)\r\nzz\r\n",
      "Transfer-Encoding: chunked\r\n\r\n3e8\r\n\(text)",
    ])
  func `Nothing of a failure is written into a body: a body that is cut is a connection that is cut`(
    mode: HTTPCacheMode, rest: String
  ) async throws {
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + rest
    try await run(mode, answering: answer, ending: .close) { proxy, origin async throws in
      for _ in 1...2 {
        let received = try await proxy.raw("GET / HTTP/1.1\r\nHost: proxy\r\n\r\n")
        // A cut connection may be reset before its last bytes arrive.
        guard let end = received.firstRange(of: "\r\n\r\n") else { continue }
        #expect(received.hasPrefix("HTTP/1.1 200 OK"))
        let body = received[end.upperBound...]
        #expect(!body.contains("HTTP/1.1") && !body.contains("\r\n0\r\n"))
        #expect(body.filter { $0 == "x" }.count <= Self.text.count)
      }
      #expect(origin.requests.count == 2)
    }
  }

  @Test("A request with several hosts, or none, is refused, and does not reach the origin", arguments: modes)
  func hosts(mode: HTTPCacheMode) async throws {
    try await run(mode) { proxy, origin async throws in
      let end = "Connection: close\r\n\r\n"
      for hosts in ["", "Host: good\r\nHost: evil.example\r\n", "Host: good\r\nhost: good\r\n"] {
        let received = try await proxy.raw("GET / HTTP/1.1\r\n\(hosts)\(end)")
        #expect(received.hasPrefix("HTTP/1.1 400 ") && received.components(separatedBy: "HTTP/1.1").count == 2)
      }
      #expect(origin.requests.isEmpty)
      #expect(try await proxy.raw("GET / HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test(arguments: modes)
  func `Fields that can change the response, but are in no key, are removed`(mode: HTTPCacheMode) async throws {
    let names = [
      "Forwarded", "X-Forwarded-Host", "x-forwarded-proto", "X-Forwarded-Prefix", "X-Host", "X-HTTP-Host-Override",
      "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override", "X-Original-Host", "X-Original-URL",
      "X-Rewrite-URL",
    ]
    try await run(mode) { proxy, origin async throws in
      let fields = names.map { "\($0): evil.example\r\n" }.joined() + "X-Other: 1\r\n"
      #expect(try await proxy.exchange("GET /", fields: fields).status == 200)
      let request = try #require(origin.requests.first)
      for name in names { #expect(request[name].isEmpty, "\(name)") }
      #expect(request["X-Other"] == ["1"] && request["Host"] == ["127.0.0.1:\(origin.port)"])
    }
  }

  @Test(
    arguments: modes,
    [
      "POST / HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nabc\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: identity\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ])
  func `A body of the client whose framing is wrong is an error of the client, and is answered once`(
    mode: HTTPCacheMode, request: String
  ) async throws {
    let origin = try await TestOrigin { request, wire in
      // An origin that gets no whole body does not answer.
      guard request.isComplete else { return .close }
      try await wire.send(Self.ok)
      return .keep
    }
    try await TestProxy.run(mode, originPort: origin.port) { proxy async throws in
      let received = try await proxy.raw(request)
      #expect(received.hasPrefix("HTTP/1.1 400 "), "\(received)")
      #expect(received.components(separatedBy: "HTTP/1.1 ").count == 2, "\(received)")
      #expect(try await proxy.exchange("GET /").status == 200)
    }
    #expect(origin.requests.allSatisfy { !$0.isComplete || $0.method == "GET" })
    await origin.stop()
  }

  @Test(arguments: modes)
  func `A change of the protocol is not a response`(mode: HTTPCacheMode) async throws {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n"
    try await run(mode, answering: answer) { proxy, _ async throws in
      #expect(try await proxy.exchange("GET /").status == 502)
    }
  }

  @Test(arguments: modes)
  func `The length of a body that a response does not have is not passed on`(mode: HTTPCacheMode) async throws {
    try await run(mode, answering: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", ending: .close) {
      proxy, _ async throws in
      let response = try await proxy.exchange("GET /")
      #expect(response.status == 204 && response["Content-Length"].isEmpty)
    }
  }

  @Test(arguments: modes, ["no-store", "no-cache", "max-age=60"])
  func `Requests that wait for the origin do not stop others`(mode: HTTPCacheMode, directive: String) async throws {
    let (gate, open) = AsyncStream<Void>.makeStream()
    let waiting = Task { for await _ in gate {} }
    let origin = try await TestOrigin { request, wire in
      if request.target.hasPrefix("/slow") { await waiting.value }
      try await wire.send("HTTP/1.1 200 OK\r\nCache-Control: \(directive)\r\nContent-Length: 2\r\n\r\nok")
      return .keep
    }
    try await TestProxy.run(mode, originPort: origin.port) { proxy async throws in
      try await withThrowingTaskGroup { group in
        for number in 1...20 { group.addTask { try await proxy.exchange("GET /slow\(number)").body } }
        while origin.requests.count < 20 { try await Task.sleep(for: .milliseconds(1)) }
        try await withThrowingTaskGroup { fast in
          for _ in 1...2 { fast.addTask { try await proxy.exchange("GET /fast").body } }
          for try await body in fast { #expect(body == "ok") }
        }
        open.finish()
        for try await body in group { #expect(body == "ok") }
      }
    }
    await origin.stop()
  }

  @Test("A stale response is refreshed in the background while other requests wait for the origin", arguments: modes)
  func refresh(mode: HTTPCacheMode) async throws {
    let (gate, open) = AsyncStream<Void>.makeStream()
    let waiting = Task { for await _ in gate {} }
    let count = Locked(0)
    let origin = try await TestOrigin { request, wire in
      if request.target.hasPrefix("/slow") { await waiting.value }
      let body = count.withLock { count in
        count += request.target == "/" ? 1 : 0
        return "\(count)"
      }
      try await wire.send(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=0, stale-while-revalidate=60\r\nContent-Length: 1\r\n\r\n\(body)")
      return .keep
    }
    try await TestProxy.run(mode, originPort: origin.port) { proxy async throws in
      try await withThrowingTaskGroup { group in
        for number in 1...20 { group.addTask { _ = try await proxy.exchange("GET /slow\(number)") } }
        while origin.requests.count < 20 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(try await proxy.exchange("GET /").body == "1")
        while try await proxy.exchange("GET /").body == "1" { try await Task.sleep(for: .milliseconds(1)) }
        open.finish()
        try await group.waitForAll()
      }
    }
    await origin.stop()
  }
}
