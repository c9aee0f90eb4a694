import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderTesting
import LarderURLSession
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Caching in a URLSession", .timeLimit(.minutes(5)))
struct SessionTests {
  private static let fresh = "Cache-Control: max-age=60"

  @Test("A fresh response is sent for once, and the status says how each request was answered")
  func hit() async throws {
    try await SessionSetting.run { _, wire in
      try await wire.send(response(status: "203 Fine", Self.fresh, "X-Text: a"))
      return .keep
    } _: { setting async throws in
      let first = try await setting.send(setting.request("/?b=2#part"))
      #expect(first.body == "text" && first.response.statusCode == 203)
      #expect(first.response.cacheStatus?.forward == .uriMiss && first.response.cacheStatus?.isStored == true)
      setting.clock.advance(by: .seconds(20))
      var patient = try setting.request("/?b=2")
      patient.timeoutInterval = .infinity
      let second = try await setting.send(patient)
      #expect(second.body == "text" && second.isHit && second["X-Text"] == "a" && second["Age"] == "20")
      #expect(second.response.url?.path == "/" && second.response.cacheStatus?.timeToLive == 40)
      #expect(setting.origin.requests.map(\.target) == ["/?b=2"])
    }
  }

  @Test("A stale response is validated, and the policy of a request counts")
  func validation() async throws {
    try await SessionSetting.run { request, wire in
      if request["If-None-Match"] == ["\"1\""] {
        try await wire.send("HTTP/1.1 304 Not Modified\r\n\(Self.fresh)\r\nETag: \"1\"\r\n\r\n")
      } else {
        try await wire.send(response(Self.fresh, "ETag: \"1\""))
      }
      return .keep
    } _: { setting async throws in
      #expect(try await setting.send(setting.request("/")).body == "text")
      setting.clock.advance(by: .seconds(100))
      let validated = try await setting.send(setting.request("/"))
      #expect(validated.body == "text" && validated.response.cacheStatus?.isValidated == true)
      setting.clock.advance(by: .seconds(100))
      let (data, old) = try await setting.session.data(for: setting.request("/"), policy: .cacheOnly)
      #expect(data.count == 4 && old.cacheStatus?.isHit == true)
      #expect(try await setting.session.data(for: setting.request("/x"), policy: .cacheOnly).1.statusCode == 504)
      #expect(setting.origin.requests.count == 2)
    }
  }

  @Test("A body is uploaded as it is, and an unsafe method invalidates what is stored")
  func uploads() async throws {
    try await SessionSetting.run { request, wire in
      try await wire.send(response(Self.fresh, body: request.method + request.body))
      return .keep
    } _: { setting async throws in
      _ = try await setting.send(setting.request("/"))
      #expect(try await setting.send(setting.request("/")).isHit)
      #expect(try await setting.send(setting.request("/", "PUT", body: "abc")).body == "PUTabc")
      #expect(setting.origin.requests.last?["Content-Length"] == ["3"])
      #expect(try await !setting.send(setting.request("/")).isHit)
    }
  }

  @Test("A body is asked for without encoding. One that is encoded nevertheless is not stored, and that is counted")
  func encoded() async throws {
    let gzip: [UInt8] = [
      0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7,
      0x51, 0xC8, 0x40, 0xA2, 0x00, 0x9F, 0xA1, 0xCA, 0x09, 0x13, 0x00, 0x00, 0x00,
    ]
    try await SessionSetting.run { request, wire in
      let body = String(String.UnicodeScalarView(gzip.map { Unicode.Scalar($0) }))
      let coding = request.target == "/upper" ? "GZIP" : "gzip"
      try await wire.send(response(Self.fresh, "Content-Encoding: \(coding)", "ETag: \"1\"", body: body))
      return .keep
    } _: { setting async throws in
      for path in ["/", "/", "/upper"] {
        let received = try await setting.send(setting.request(path))
        #expect(received.body == "hello, hello, hello" && !received.isHit)
        #expect(received.response.cacheStatus?.detail == "not-stored-client")
      }
      #expect(setting.origin.requests.allSatisfy { $0["Accept-Encoding"] == ["identity"] })
      #expect(setting.cache.statistics().notStoredCounts == ["client": 3])
      _ = try await setting.send(setting.request("/", fields: ["Accept-Encoding": "gzip"]))
      #expect(setting.origin.requests.last?["Accept-Encoding"] == ["gzip"])
    }
  }

  @Test("A response for the same credentials is reused, one for others is not, and neither goes to another origin")
  func users() async throws {
    try await SessionSetting.run { request, wire in
      try await wire.send(response("Cache-Control: max-age=60", body: request["Authorization"].first ?? "none"))
      return .keep
    } _: { setting async throws in
      for isHit in [false, true] {
        for user in ["alice", "bob"] {
          let received = try await setting.send(setting.request("/", fields: ["Authorization": user]))
          #expect(received.body == user && received.isHit == isHit)
        }
        for partition: [UInt8] in [[1], [2]] {
          #expect(try await setting.send(setting.request("/"), partition: partition).isHit == isHit)
        }
      }
    }
  }

  @Test func `The cache sees the fields that a configuration adds, and the cookies`() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["X-Version": "1"]
    let cookies = try #require(configuration.httpCookieStorage)
    try await SessionSetting.run(configuration: configuration) { request, wire in
      try await wire.send(
        response(
          Self.fresh, "Vary: Cookie, X-Version, Accept-Language", "Set-Cookie: a=\(request.target.dropFirst())",
          body: request["Cookie"].joined()))
      return .keep
    } _: { setting async throws in
      let first = try await setting.send(setting.request("/1"))
      #expect(first.body == "" && setting.origin.requests.last?["X-Version"] == ["1"])
      #expect(setting.origin.requests.last?["Accept-Language"].count == 1)
      let url = try #require(setting.request("/").url)
      #expect(cookies.cookies(for: url)?.map(\.value) == ["1"])
      // The same URL with another cookie has another response.
      let second = try await setting.send(setting.request("/1"))
      #expect(second.body == "a=1" && !second.isHit)
      #expect(try await setting.send(setting.request("/1")).isHit)
      #expect(try await !setting.send(setting.request("/1", fields: ["X-Version": "2"])).isHit)
    }
  }

  @Test("A body that the server cut short is an error, and is not stored")
  func cut() async throws {
    try await SessionSetting.run { _, wire in
      try await wire.send("HTTP/1.1 200 OK\r\n\(Self.fresh)\r\nContent-Length: 1000\r\n\r\ntext")
      return .close
    } _: { setting async throws in
      for _ in 1...2 { await #expect(throws: (any Error).self) { try await setting.send(setting.request("/")) } }
      #expect(setting.origin.requests.count == 2 && setting.cache.statistics().storedCount == 0)
      #expect(setting.cache.statistics().notStoredCounts == ["cut": 2])
    }
  }

  @Test("Errors of the session, of the URL and of an invalidated session")
  func errors() async throws {
    try await SessionSetting.run { _, _ in
      .close
    } _: { setting async throws in
      await #expect(throws: URLError.self) { try await setting.send(setting.request("/")) }
      let url = try #require(URL(string: "ftp://127.0.0.1/"))
      let error = await #expect(throws: URLError.self) { try await setting.session.data(from: url) }
      #expect(error?.code == .unsupportedURL)
      setting.session.finishTasksAndInvalidate()
      let ended = await #expect(throws: CachedURLSessionError.self) { try await setting.send(setting.request("/")) }
      #expect(ended?.code == .invalidated)
    }
  }

  @Test("A body without a reader takes no more memory than its limit")
  func unread() async throws {
    let sent = Locked(0)
    let chunk = String(repeating: "x", count: 1 << 16)
    let count = 1024
    try await SessionSetting.run(unreadLimit: 1 << 20) { _, wire in
      try await wire.send(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: \(count * chunk.utf8.count)\r\n\r\n")
      for _ in 1...count {
        try await wire.send(chunk)
        sent.withLock { $0 += chunk.utf8.count }
      }
      return .keep
    } _: { setting async throws in
      let (body, _) = try await setting.session.chunks(for: setting.request("/"))
      var held = -1
      while held != sent.withLock({ $0 }) {
        held = sent.withLock { $0 }
        try await Task.sleep(for: .milliseconds(200))
      }
      #expect(held < 32 << 20)
      #if canImport(FoundationNetworking)
      let error = await #expect(throws: CachedURLSessionError.self) { for try await _ in body {} }
      #expect(error?.code == .unreadBodyTooLarge)
      #else
      var received = 0
      for try await bytes in body { received += bytes.count }
      #expect(received == count * chunk.utf8.count)
      #endif
    }
  }

  @Test(
    "A body arrives in chunks before its end, and a caller that is cancelled ends the request",
    arguments: [true, false])
  func cancellation(afterHead: Bool) async throws {
    let hasEnded = Locked(false)
    try await SessionSetting.run { _, wire in
      var wire = wire
      if afterHead { try await wire.send("HTTP/1.1 200 OK\r\n\(Self.fresh)\r\nContent-Length: 1000\r\n\r\ntext") }
      // The server waits until the session closes the connection.
      while try await wire.readSome() != nil {}
      hasEnded.withLock { $0 = true }
      return .close
    } _: { setting async throws in
      let (received, note) = AsyncStream<[UInt8]>.makeStream()
      let caller = Task {
        let (body, _) = try await setting.session.chunks(for: setting.request("/"))
        for try await bytes in body { note.yield(bytes) }
      }
      if afterHead {
        for await bytes in received { #expect(bytes == Array("text".utf8)); break }
      } else {
        while setting.origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
      }
      caller.cancel()
      await #expect(throws: (any Error).self) { try await caller.value }
      while !hasEnded.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
    }
  }
}
