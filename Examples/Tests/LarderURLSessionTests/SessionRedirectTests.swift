import Foundation
import HTTPTestSupport
import LarderHTTPCache
import LarderTesting
import LarderURLSession
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Redirects of a URLSession", .timeLimit(.minutes(5)))
struct SessionRedirectTests {
  private static let fresh = "Cache-Control: max-age=60"

  @Test("Each response to a redirect is stored under its own URL")
  func hops() async throws {
    try await SessionSetting.run { request, wire in
      switch request.target {
      case "/a": try await wire.send(redirect("301", to: "/b"))
      case "/b": try await wire.send(redirect("302", to: "c"))
      default: try await wire.send(response(Self.fresh, body: request.target))
      }
      return .keep
    } _: { setting async throws in
      for isHit in [false, true] {
        let received = try await setting.send(setting.request("/a"))
        #expect(received.body == "/c" && received.response.url?.path == "/c" && received.isHit == isHit)
      }
      #expect(setting.origin.requests.map(\.target) == ["/a", "/b", "/c"])
    }
  }

  @Test("Redirects have a limit, and are responses if it is 0", arguments: [0, 2])
  func limits(limit: Int) async throws {
    try await SessionSetting.run(redirectLimit: limit) { request, wire in
      try await wire.send(redirect("308", to: request.target + "x"))
      return .keep
    } _: { setting async throws in
      if limit == 0 {
        let received = try await setting.send(setting.request("/"))
        #expect(received.response.statusCode == 308 && received.body == "moved" && received["Location"] == "/x")
        #expect(try await setting.send(setting.request("/")).isHit)
      } else {
        let error = await #expect(throws: URLError.self) { try await setting.send(setting.request("/")) }
        #expect(error?.code == .httpTooManyRedirects && setting.origin.requests.count == 3)
      }
    }
  }

  @Test(
    "POST becomes GET after 301, 302 and 303, and is sent again after 307 and 308",
    arguments: [("301", "GET"), ("302", "GET"), ("303", "GET"), ("307", "POSTx"), ("308", "POSTx")])
  func methods(status: String, body: String) async throws {
    try await SessionSetting.run { request, wire in
      try await wire.send(
        request.target == "/a" && request.method != "GET"
          ? redirect(status, to: "/b") : response(Self.fresh, body: request.method + request.body))
      return .keep
    } _: { setting async throws in
      #expect(try await setting.send(setting.request("/a", "POST", body: "x")).body == body)
      #expect(setting.origin.requests.count == 2)
      #expect(try await !setting.send(setting.request("/a")).isHit)
    }
  }

  @Test("Credentials are for one origin, also those of the configuration")
  func origins() async throws {
    let other = try await TestOrigin { _, wire in
      try await wire.send(response(Self.fresh))
      return .keep
    }
    let port = other.port
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["Proxy-Authorization": "secret", "X-Added": "1"]
    try await SessionSetting.run(configuration: configuration) { request, wire in
      try await wire.send(redirect("302", to: request.target == "/a" ? "/b" : "http://127.0.0.1:\(port)/c"))
      return .keep
    } _: { setting async throws in
      let fields = ["Authorization": "secret", "Cookie": "a=secret", "X-Other": "1"]
      _ = try await setting.send(setting.request("/a", fields: fields))
      let same = try #require(setting.origin.requests.last)
      let last = try #require(other.requests.last)
      #expect(same.target == "/b" && last.target == "/c")
      for name in ["Authorization", "Cookie", "Proxy-Authorization"] {
        #expect(same[name].count == 1 && last[name].isEmpty)
      }
      #expect(last["X-Other"] == ["1"] && last["X-Added"] == ["1"])
    }
    await other.stop()
  }

  @Test func `A redirect without a target is the response, of which this system may lose the body`() async throws {
    try await SessionSetting.run { _, wire in
      try await wire.send(response(status: "302 Found", "Cache-Control: no-store", body: ""))
      return .keep
    } _: { setting async throws in
      #expect(try await setting.send(setting.request("/")).response.statusCode == 302)
    }
  }
}
