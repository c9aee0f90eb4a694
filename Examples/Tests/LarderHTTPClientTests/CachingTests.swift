import AsyncHTTPClient
import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderHTTPClient
import LarderTesting
import NIOCore
import NIOHTTP1
import Testing

@Suite("Caching in a client", .timeLimit(.minutes(5)))
struct CachingTests {
  private static let fresh = "Cache-Control: max-age=60"

  @Test("A fresh response is sent for once, and the status says how each request was answered")
  func hit() async throws {
    try await Setting.run { _, wire in
      try await wire.send(response(status: "203 Fine", Self.fresh, "X-Text: a"))
      return .keep
    } _: { setting async throws in
      let first = try await setting.send(setting.request("/?b=2"))
      #expect(first.body == "text" && first.response.status.code == 203)
      #expect(first.response.cacheStatus?.forward == .uriMiss && first.response.cacheStatus?.isStored == true)
      setting.clock.advance(by: .seconds(20))
      let second = try await setting.send(setting.request("/?b=2"))
      #expect(second.body == "text" && second.isHit && second["X-Text"] == ["a"] && second["Age"] == ["20"])
      #expect(second.response.cacheStatus?.timeToLive == 40)
      #expect(second.response.url?.path == "/" && second.response.history.count == 1)
      setting.clock.advance(by: .seconds(60))
      let third = try await setting.send(setting.request("/?b=2"))
      #expect(third.response.cacheStatus?.forward == .uriMiss || third.response.cacheStatus?.forward == .stale)
      #expect(setting.origin.requests.map(\.target) == ["/?b=2", "/?b=2"])
    }
  }

  @Test("Bodies of every kind arrive as they were given, and an unsafe method invalidates what is stored")
  func uploads() async throws {
    try await Setting.run { request, wire in
      try await wire.send(response(Self.fresh, body: request.body))
      return .keep
    } _: { setting async throws in
      let parts = [ByteBuffer(string: "one"), ByteBuffer(string: "two")]
      let stream = AsyncStream(unfolding: { nil as ByteBuffer? })
      let bodies: [(HTTPClientRequest.Body, String, [String])] = [
        (.bytes(ByteBuffer(string: "bytes")), "bytes", []),
        (.bytes(Array("array".utf8)), "array", []),
        (.stream(Chunks(chunks: parts), length: .unknown), "onetwo", ["chunked"]),
        (.stream(Chunks(chunks: parts), length: .known(Int64(6))), "onetwo", []),
        (.stream(stream, length: .unknown), "", ["chunked"]),
      ]
      for (body, text, encoding) in bodies {
        #expect(try await !setting.send(setting.request("/")).isHit)
        #expect(try await setting.send(setting.request("/")).isHit)
        let posted = try await setting.send(setting.request("/", .post, fields: [("X-A", "1")], body: body))
        #expect(posted.body == text)
        let request = try #require(setting.origin.requests.last)
        #expect(request["Transfer-Encoding"] == encoding && request["X-A"] == ["1"])
        #expect(request["Content-Length"] == (encoding.isEmpty ? ["\(text.utf8.count)"] : []))
      }
      // A body of a GET is for the origin.
      _ = try await setting.send(setting.request("/"))
      #expect(try await setting.send(setting.request("/", body: .bytes(ByteBuffer(string: "x")))).body == "x")
    }
  }

  @Test("A stale response is validated, and one whose validator was repaired is not")
  func validation() async throws {
    try await Setting.run { request, wire in
      let tag = request.target == "/repaired" ? "\"\u{FC}\"" : "\"1\""
      let date = request.target == "/repaired" ? "Last-Modified: Mon, 01 Jan \u{FC}" : "X: 1"
      if request["If-None-Match"] == ["\"1\""] {
        try await wire.send("HTTP/1.1 304 Not Modified\r\n\(Self.fresh)\r\nETag: \"1\"\r\n\r\n")
      } else {
        try await wire.send(response(Self.fresh, "ETag: \(tag)", date))
      }
      return .keep
    } _: { setting async throws in
      for path in ["/", "/repaired"] {
        let first = try await setting.send(setting.request(path))
        #expect(first["ETag"] == (path == "/" ? ["\"1\""] : []))
        setting.clock.advance(by: .seconds(100))
        let second = try await setting.send(setting.request(path))
        #expect(second.body == "text" && second.response.cacheStatus?.isValidated == (path == "/"))
      }
      #expect(setting.origin.requests.map { $0["If-None-Match"] } == [[], ["\"1\""], [], []])
      #expect(setting.origin.requests.allSatisfy { $0["If-Modified-Since"].isEmpty })
    }
  }

  @Test(
    "The key is the target that is sent",
    arguments: [
      ("/a|b", "/a%7Cb"), ("/%zz", "/%25zz"), ("/a b?c|d", "/a%20b?c%7Cd"), ("", "/"), ("?a", "/?a"), ("/%FF", "/"),
    ])
  func keys(path: String, sent: String) async throws {
    try await Setting.run { _, wire in
      try await wire.send(response(Self.fresh))
      return .keep
    } _: { setting async throws in
      _ = try await setting.send(setting.request(path))
      #expect(try await setting.send(setting.request(path)).isHit)
      #expect(setting.origin.requests.map(\.target) == [sent])
      #expect(try await setting.send(setting.request(sent)).isHit)
      try await setting.cache.invalidate("http://127.0.0.1:\(setting.origin.port)\(sent)")
      #expect(try await !setting.send(setting.request(path)).isHit)
    }
  }

  @Test("A Host of its own has responses of its own")
  func host() async throws {
    try await Setting.run { request, wire in
      try await wire.send(response(Self.fresh, body: request["Host"].joined()))
      return .keep
    } _: { setting async throws in
      for _ in 1...2 {
        for host in ["a.example", "b.example"] {
          #expect(try await setting.send(setting.request("/", fields: [("Host", host)])).body == host)
        }
        #expect(try await setting.send(setting.request("/")).body == "127.0.0.1:\(setting.origin.port)")
      }
      #expect(setting.origin.requests.count == 3)
    }
  }

  @Test("Interim responses are not the response")
  func interim() async throws {
    try await Setting.run { _, wire in
      try await wire.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\(response(Self.fresh))")
      return .keep
    } _: { setting async throws in
      for _ in 1...2 { #expect(try await setting.send(setting.request("/")).body == "text") }
      #expect(setting.origin.requests.count == 1)
    }
  }

  @Test("A URL that is not HTTP, and a field that is invalid, fail like those of the client")
  func invalid() async throws {
    try await Setting.run { _, _ in
      .close
    } _: { setting async throws in
      await #expect(throws: HTTPClientError.unsupportedScheme("ftp")) {
        try await setting.send(HTTPClientRequest(url: "ftp://127.0.0.1/"))
      }
      await #expect(throws: HTTPClientError.invalidHeaderFieldValues(["a\r\nb"])) {
        try await setting.send(setting.request("/", fields: [("X", "a\r\nb")]))
      }
      await #expect(throws: HTTPClientError.remoteConnectionClosed) { try await setting.send(setting.request("/")) }
    }
  }

  @Test("A caller that waits for the request of another one has a deadline of its own", arguments: [true, false])
  func deadline(isFirst: Bool) async throws {
    let (answers, answer) = AsyncStream<Void>.makeStream()
    try await Setting.run { request, wire in
      for await _ in answers { break }
      try await wire.send(response(Self.fresh))
      return .keep
    } _: { setting async throws in
      // The client measures deadlines by the clock of the system. On a busy machine, the deadline can pass before the caller
      // begins, which then fails without a request.
      let short = NIODeadline.now() + .milliseconds(300)
      let first = Task {
        try await setting.http.execute(setting.request("/"), deadline: isFirst ? short : .now() + .seconds(50))
      }
      while setting.origin.requests.isEmpty, !isFirst || NIODeadline.now() < short {
        try await Task.sleep(for: .milliseconds(1))
      }
      let second = Task {
        try await setting.http.execute(setting.request("/"), deadline: isFirst ? .now() + .seconds(50) : short)
      }
      while setting.cache.statistics().requestCount < 2, NIODeadline.now() < short {
        try await Task.sleep(for: .milliseconds(1))
      }
      // The limit for waiting is measured by the clock of the cache. It is advanced again and again, because the caller may
      // not sleep yet.
      let advancing = Task {
        while NIODeadline.now() < short { try await Task.sleep(for: .milliseconds(1)) }
        while !isFirst {
          setting.clock.advance(by: .seconds(1))
          try await Task.sleep(for: .milliseconds(1))
        }
      }
      await #expect(throws: HTTPClientError.deadlineExceeded) { try await (isFirst ? first : second).value }
      advancing.cancel()
      answer.yield()
      answer.yield()
      #expect(try await (isFirst ? second : first).value.status == .ok)
    }
  }

  @Test func `A client that does not read holds the origin back`() async throws {
    let sent = Locked(0)
    let chunk = String(repeating: "x", count: 1 << 16)
    let count = 1024
    try await Setting.run { _, wire in
      try await wire.send(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: \(count * chunk.utf8.count)\r\n\r\n")
      for _ in 1...count {
        try await wire.send(chunk)
        sent.withLock { $0 += chunk.utf8.count }
      }
      return .keep
    } _: { setting async throws in
      let response = try await setting.http.execute(setting.request("/"), timeout: .seconds(60))
      var held = -1
      while held != sent.withLock({ $0 }) {
        held = sent.withLock { $0 }
        try await Task.sleep(for: .milliseconds(200))
      }
      #expect(held < 32 << 20)
      var received = 0
      for try await buffer in response.body { received += buffer.readableBytes }
      #expect(received == count * chunk.utf8.count)
    }
  }
}

/// A body in chunks.
private struct Chunks: AsyncSequence, Sendable {
  let chunks: [ByteBuffer]

  struct AsyncIterator: AsyncIteratorProtocol {
    var chunks: ArraySlice<ByteBuffer>

    @concurrent
    mutating func next() async throws -> ByteBuffer? { chunks.popFirst() }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunks: chunks[...]) }
}
