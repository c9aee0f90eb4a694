import Larder
import AsyncHTTPClient
import Foundation
import HTTPTestSupport
import LarderHTTPCache
import LarderHTTPClient
import LarderTesting
import NIOCore
import NIOHTTP1
import Testing

@Suite("Redirects", .timeLimit(.minutes(5)))
struct RedirectTests {
  private static let fresh = "Cache-Control: max-age=60"

  @Test("Each response to a redirect is stored under its own URL")
  func hops() async throws {
    try await Setting.run { request, wire in
      switch request.target {
      case "/a": try await wire.send(redirect("301", to: "/b"))
      case "/b": try await wire.send(redirect("302", to: "c"))
      default: try await wire.send(response(Self.fresh, body: request.target))
      }
      return .keep
    } _: { setting async throws in
      for _ in 1...3 {
        let response = try await setting.send(setting.request("/a"))
        #expect(response.body == "/c" && response.response.url?.path == "/c")
        #expect(response.response.history.map(\.responseHead.status.code) == [301, 302, 200])
      }
      #expect(setting.origin.requests.map(\.target) == ["/a", "/b", "/c"])
      #expect(try await setting.send(setting.request("/c")).isHit)
      let first = try await Setting.with(CachedHTTPClient(cache: setting.cache, redirects: .disallow)) {
        try await setting.send(setting.request("/a"), by: $0)
      }
      #expect(first.response.status == .movedPermanently && first.body == "moved" && first.isHit)
      #expect(first["Location"] == ["/b"])
    }
  }

  @Test("A stale redirect is validated by its own conditions, which are not sent to the next URL")
  func conditions() async throws {
    try await Setting.run { request, wire in
      if request.target == "/a" {
        try await wire.send(
          request["If-None-Match"].isEmpty
            ? response(status: "302 Found", "Location: /b", "ETag: \"a\"", Self.fresh)
            : "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\(Self.fresh)\r\n\r\n")
      } else {
        try await wire.send(response("Cache-Control: no-store"))
      }
      return .keep
    } _: { setting async throws in
      for _ in 1...2 {
        #expect(try await setting.send(setting.request("/a")).body == "text")
        setting.clock.advance(by: .seconds(100))
      }
      #expect(setting.origin.requests.map(\.target) == ["/a", "/b", "/a", "/b"])
      #expect(setting.origin.requests.map { $0["If-None-Match"] } == [[], [], ["\"a\""], []])
    }
  }

  @Test("Cycles and too many redirects fail as they do in the client, from the store too")
  func limits() async throws {
    let targets = ["/x": "/y", "/y": "/x", "/1": "/2", "/2": "/3", "/3": "/4", "/4": "/5", "/5": "/6", "/6": "/7"]
    try await Setting.run { request, wire in
      try await wire.send(redirect("308", to: targets[request.target] ?? "/"))
      return .keep
    } _: { setting async throws in
      for _ in 1...2 {
        await #expect(throws: HTTPClientError.redirectCycleDetected) { try await setting.send(setting.request("/x")) }
        await #expect(throws: HTTPClientError.redirectLimitReached) { try await setting.send(setting.request("/1")) }
      }
      #expect(setting.origin.requests.map(\.target) == ["/x", "/y", "/1", "/2", "/3", "/4", "/5", "/6"])
      let patient = CachedHTTPClient(cache: setting.cache, redirects: .follow(max: 2, allowCycles: true))
      try await Setting.with(patient) { patient in
        await #expect(throws: HTTPClientError.redirectLimitReached) {
          try await setting.send(setting.request("/x"), by: patient)
        }
      }
    }
  }

  @Test(
    "POST becomes GET as in the client, each request is sent once, and no response is stored under the first URL",
    arguments: [("301", "GET"), ("302", "GET"), ("303", "GET"), ("307", "POST"), ("308", "POST")],
    [true, false])
  func methods(_ change: (status: String, method: String), resendsBodies: Bool) async throws {
    // The redirects of the client inside are turned off, whatever its configuration says.
    let client = HTTPClient.Configuration(redirectConfiguration: .follow(max: 5, allowCycles: false))
    let redirects = CachedHTTPClient.Redirects.follow(resendsBodies: resendsBodies)
    try await Setting.run(client: client, redirects: redirects) { request, wire in
      try await wire.send(
        request.target == "/a" && request.method != "GET"
          ? redirect(change.status, to: "/b") : response(Self.fresh, body: request.method + request.body))
      return .keep
    } _: { setting async throws in
      let request = setting.request("/a", .post, body: .bytes(ByteBuffer(string: "x")))
      let received = try await setting.send(request)
      if change.method == "GET" {
        #expect(received.body == "GET" && received.response.status == .ok)
        #expect(setting.origin.requests.map(\.startLine) == ["POST /a HTTP/1.1", "GET /b HTTP/1.1"])
        #expect(setting.origin.requests.last?["Content-Length"] == [])
        #expect(try await setting.send(setting.request("/b")).isHit)
      } else if resendsBodies {
        #expect(received.body == "POSTx" && received.response.status == .ok)
        #expect(setting.origin.requests.map(\.startLine) == ["POST /a HTTP/1.1", "POST /b HTTP/1.1"])
      } else {
        #expect(received.body == "moved" && setting.origin.requests.count == 1)
      }
      #expect(try await !setting.send(setting.request("/a")).isHit)
    }
  }

  @Test("A body that can be sent once is not sent again; the redirect is the response")
  func stream() async throws {
    try await Setting.run { _, wire in
      try await wire.send(redirect("307", to: "/b"))
      return .keep
    } _: { setting async throws in
      let body = AsyncStream {
        $0.yield(ByteBuffer(string: "x")); $0.finish()
      }
      let request = setting.request("/a", .put, body: .stream(body, length: .unknown))
      let received = try await setting.send(request)
      #expect(received.response.status == .temporaryRedirect && received.body == "moved")
      #expect(setting.origin.requests.map(\.body) == ["x"])
    }
  }

  @Test("The body of a redirect is read under the deadline, and a redirect is not followed after it")
  func deadline() async throws {
    try await Setting.run { request, wire in
      guard request.target == "/a" else {
        try await wire.send(response(Self.fresh))
        return .keep
      }
      try await wire.send("HTTP/1.1 302 Found\r\nLocation: /b\r\n\(Self.fresh)\r\nContent-Length: 10\r\n\r\n12345")
      try await Task.sleep(for: .seconds(3_600))
      return .close
    } _: { setting async throws in
      _ = try await setting.send(setting.request("/b"))
      var timeout = TimeAmount.milliseconds(300)
      // A busy machine may need longer to send the request.
      while !setting.origin.requests.map(\.target).contains("/a") {
        await #expect(throws: HTTPClientError.deadlineExceeded) {
          try await setting.http.execute(setting.request("/a"), timeout: timeout)
        }
        timeout = timeout + timeout
      }
      #expect(setting.origin.requests.count { $0.target == "/b" } == 1)
    }
  }

  @Test("A target may have a fragment and characters that are encoded, and hosts have no case")
  func targets() async throws {
    try await Setting.run { request, wire in
      let port = request["Host"].joined().split(separator: ":").last ?? ""
      try await wire.send(
        request.target == "/a" ? redirect("302", to: "HTTP://LOCALHOST:\(port)/b c?d|e#f") : response(Self.fresh))
      return .keep
    } _: { setting async throws in
      var request = setting.request("/a", fields: [("Authorization", "secret")])
      request.url = request.url.replacing("127.0.0.1", with: "localhost")
      let received = try await setting.send(request)
      #expect(setting.origin.requests.map(\.target) == ["/a", "/b%20c?d%7Ce"])
      #expect(setting.origin.requests.allSatisfy { $0["Authorization"] == ["secret"] })
      #expect(received.response.url?.fragment == "f")
    }
  }

  @Test("Credentials and Host are for one origin")
  func origins() async throws {
    let other = try await TestOrigin { request, wire in
      try await wire.send(response(Self.fresh))
      return .keep
    }
    let port = other.port
    try await Setting.run { request, wire in
      try await wire.send(redirect("302", to: request.target == "/a" ? "/b" : "http://127.0.0.1:\(port)/c"))
      return .keep
    } _: { setting async throws in
      let secrets = ["Authorization", "Cookie", "Host", "Origin", "Proxy-Authorization"]
      let fields = (secrets + ["X-Other"]).map { ($0, "secret") }
      _ = try await setting.send(setting.request("/a", fields: fields))
      let same = try #require(setting.origin.requests.last)
      let last = try #require(other.requests.last)
      #expect(same.target == "/b" && last.target == "/c")
      for name in secrets {
        #expect(same[name] == ["secret"])
        #expect(last[name] == (name == "Host" ? ["127.0.0.1:\(port)"] : []))
      }
      #expect(last["X-Other"] == ["secret"])
    }
    await other.stop()
  }
}
