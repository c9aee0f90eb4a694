import Foundation
import HTTPTypes
import HummingbirdTesting
import Larder
import LarderHTTPCache
import LarderInspector
import LarderTesting
import NIOCore
import Testing

@Suite("Pages of HTTP caches", .timeLimit(.minutes(5)))
struct HTTPCachePageTests {
  private let store = MemoryStore<[UInt8]>()
  private let cache: HTTPCache

  init() async throws {
    cache = try await HTTPCache(store, configuration: .shared)
    try await get("/old", [.cacheControl: "max-age=60", .eTag: "\"a\""], now: { Date.now - 3_600 })
    try await get(
      "/users/7", [.cacheControl: "max-age=86400", .setCookie: "session=secret", .server: "<b>"],
      "<script>alert(1)</script>")
    try await get("/users/8", [.cacheControl: "no-cache", .eTag: "\"b\""])
    try await get(
      "/page", [.cacheControl: "max-age=86400", .vary: "Accept-Language"], request: [.acceptLanguage: "de"])
  }

  /// Requests a response, which the cache stores.
  private func get(
    _ path: String, _ fields: HTTPFields, _ body: String = "Hello", request: HTTPFields = [:],
    now: (@Sendable () -> Date)? = nil
  ) async throws {
    var configuration = HTTPCacheConfiguration.shared
    configuration.setCookieStoring = .ifFresh
    if let now { configuration.now = now }
    let cache = try await HTTPCache(store, configuration: configuration)
    let request = HTTPRequest(
      method: .get, scheme: "https", authority: "api.example", path: path, headerFields: request)
    let response = try await cache.response(to: request) { _ in
      HTTPForwardedResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: Array(body.utf8))
    }
    for try await _ in response.body {}
    // The next request for the URL waits until the response is stored.
    _ = try await cache.response(to: request, policy: .cacheOnly) { _ in throw CancellationError() }
  }

  private func address(_ path: String) -> String { "url=\(Browser.escaped("https://api.example\(path)"))" }

  @Test func `stored responses are listed by their URLs`() async throws {
    try await withInspector([InspectedStore("proxy", store, httpCache: cache)]) { browser in
      #expect(try await browser.text("").contains("http?store=0"))
      let all = try await browser.text("http?store=0")
      for path in ["old", "users/7", "users/8", "page"] { #expect(all.contains(">https://api.example/\(path)</a>")) }
      #expect(all.contains("fresh for 23 h 59 min") || all.contains("fresh for 1 d"))
      #expect(all.contains("stale for 59 min"))
      #expect(all.contains("validated each time"))
      #expect(!all.contains("<form action=\"change\""))
      let some = try await browser.text("http?store=0&\(address("/users/"))")
      #expect(some.contains("users/7") && !some.contains("/old<"))
      #expect(try await browser.text("usage?store=0").contains(#""responses":"4","#))
      #expect(try await browser.get("http?store=0&url=x").status == .badRequest)
    }
  }

  @Test(
    arguments: [
      ("/users/7", "", "Answered from the store.", "The stored response is fresh for"),
      ("/users/7", "Cache-Control: no-cache", "Forwarded to the origin.", "The fields of the request demand it"),
      ("/users/7", "Cache-Control: only-if-cached, no-cache", "Not answered.", "The answer is 504."),
      ("/old", "", "Forwarded to the origin.", "The stored response is stale for 59 min"),
      (
        "/old", "Cache-Control: max-stale", "Answered from the store.",
        "is stale, but its origin or the request permits"
      ),
      ("/users/8", "", "Forwarded to the origin.", "has <code>no-cache</code>, so the origin is asked each time"),
      ("/page", "Accept-Language: de", "Answered from the store.", "fresh for"),
      ("/page", "Accept-Language: en", "Forwarded to the origin.", "Stored responses for this URL: 1, but"),
      ("/none", "", "Forwarded to the origin.", "No response is stored for this URL"),
    ])
  func `a page says why a URL is or is not reused`(path: String, fields: String, answer: String, reason: String)
    async throws
  {
    try await withInspector([InspectedStore("proxy", store, httpCacheConfiguration: .shared)]) { browser in
      let page = try await browser.text("response?store=0&\(address(path))&fields=\(Browser.escaped(fields))")
      #expect(page.contains("<b>\(answer)</b>"), "\(page)")
      #expect(page.contains(reason), "\(page)")
    }
  }

  @Test func `fields of users are hidden and bodies are not shown as pages`() async throws {
    try await withInspector([InspectedStore("proxy", store, httpCacheConfiguration: .shared)]) { browser in
      let page = try await browser.text("response?store=0&\(address("/users/7"))")
      #expect(page.contains("Set-Cookie"))
      #expect(page.contains("14 B, hidden"))
      #expect(!page.contains("secret"))
      #expect(page.contains("&lt;b&gt;"))
      let link = try #require(page.firstMatch(of: /href="(body\?[^"]*)"/)).1.description
      let body = try await browser.get(link.replacing("&amp;", with: "&"))
      #expect(String(buffer: body.body) == "<script>alert(1)</script>")
      #expect(body.headers[.contentType] == "application/octet-stream")
      #expect(body.headers[.contentDisposition]?.hasPrefix("attachment") == true)
      #expect(body.headers[.contentSecurityPolicy]?.hasPrefix("sandbox") == true)
      #expect(try await browser.get("body?store=0&\(address("/users/7"))&key=00").status == .notFound)
    }
  }

  @Test func `lines that are no fields are refused`() async throws {
    try await withInspector([InspectedStore("proxy", store, httpCacheConfiguration: .shared)]) { browser in
      for text in ["no colon", "bad name: x", ": x"] {
        let response = try await browser.get("response?store=0&\(address("/old"))&fields=\(Browser.escaped(text))")
        #expect(response.status == .badRequest, "\(text)")
      }
      for url in ["", "x", "https://", "https://exa mple/", "javascript:alert(1)"] {
        let response = try await browser.get("response?store=0&url=\(Browser.escaped(url))")
        #expect(response.status == .badRequest, "\(url)")
      }
    }
  }

  @Test("Responses are removed after a confirmation", arguments: [true, false])
  func removal(isOwn: Bool) async throws {
    let inspected =
      isOwn
      ? try InspectedStore("proxy", store, httpCache: cache)
      : try InspectedStore("proxy", store, httpCacheConfiguration: .shared)
    try await withInspector([inspected], allowsChanges: true) { browser in
      let asked = String(
        buffer: try await browser.post([
          "store": "0", "action": "removeURL", "url": "https://api.example/users/7",
        ]).body)
      #expect(asked.contains("Remove the stored responses for <b>https://api.example/users/7</b> from the HTTP cache"))
      #expect(asked.contains("Number of stored responses: 1."))
      #expect(try await browser.text("usage?store=0").contains(#""responses":"4","#))
      #expect(try await browser.submit(asked).status == .seeOther)
      #expect(try await browser.text("usage?store=0").contains(#""responses":"3","#))
      let prefix: KeyValuePairs<String, String> = [
        "store": "0", "action": "removePrefix", "url": "https://api.example/users/",
      ]
      #expect(try await browser.confirm(prefix).status == .seeOther)
      #expect(try await browser.text("usage?store=0").contains(#""responses":"2","#))
      #expect(
        try await browser.post(["store": "0", "action": "removeURL", "url": "x"]).status == .badRequest)
      #expect(try await browser.post(["store": "0", "action": "removePrefix", "url": ""]).status == .badRequest)
      #expect(try await browser.confirm(["store": "0", "action": "removeResponses"]).status == .seeOther)
      #expect(try await browser.text("usage?store=0").contains(#""responses":"0","#))
    }
    try await withInspector([inspected]) { browser in
      let refused = try await browser.post(["store": "0", "action": "removeResponses", "confirmed": "yes"])
      #expect(refused.status == .forbidden)
    }
  }

  @Test func `the totals and the bodies of a cache are verified`() async throws {
    try await withInspector([InspectedStore("proxy", store, httpCacheConfiguration: .shared)]) { browser in
      #expect(try await browser.text("damage?store=0&run=yes").contains("No damage in"))
      let key = try #require(try store.keys(in: .all, limit: 1, order: .ascending).first)
      try await store.removeValue(forKey: key)
      let report = try await browser.text("damage?store=0&run=yes")
      #expect(report.contains("findings in"), "\(report)")
      #expect(report.contains("the origin sends them again"))
    }
  }

  /// A private cache can serve several users, whose responses it keeps apart.
  @Test func `a decision concerns the responses of one user`() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.prefix = "private/"
    configuration.identity = { Array(($0.headerFields[.authorization] ?? "").utf8) }
    let cache = try await HTTPCache(store, configuration: configuration)
    for (path, directives) in [("/own", "max-age=600"), ("/all", "public, max-age=600")] {
      let request = HTTPRequest(
        method: .get, scheme: "https", authority: "api.example", path: path, headerFields: [.authorization: "Ada"])
      let response = try await cache.response(to: request) { _ in
        HTTPForwardedResponse(
          head: HTTPResponse(status: .ok, headerFields: [.cacheControl: directives]), body: Array("Hello".utf8))
      }
      for try await _ in response.body {}
      _ = try await cache.response(to: request, policy: .cacheOnly) { _ in throw CancellationError() }
    }
    let inspector = try HTTPCacheInspector(store, configuration: configuration)
    func decision(_ path: String, _ user: String, _ policy: HTTPCachePolicy = .standard) async throws -> CacheStatus {
      try await inspector.decision(
        onURL: "https://api.example\(path)", fields: [.authorization: user], policy: policy
      ).status
    }
    #expect(try await decision("/own", "Ada").isHit)
    #expect(try await decision("/own", "Bob").forward == .uriMiss)
    #expect(try await decision("/all", "Bob").isHit)
    #expect(try await decision("/all", "Bob", .reload).forward == .request)
    #expect(try await decision("/none", "Bob", .cacheOnly).forward == nil)
  }

  @Test func `the hit ratio of a cache of this program is shown`() async throws {
    let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: "/users/7")
    for _ in 0..<3 { _ = try await cache.response(to: request) { _ in throw CancellationError() } }
    try await withInspector([InspectedStore("proxy", store, httpCache: cache)]) { browser in
      #expect(try await browser.text("state?store=0") == #"{"hits":3,"misses":0}"#)
      let page = try await browser.text("http?store=0")
      #expect(page.contains("<b>100 %</b> of 3"))
      #expect(page.contains("data-live=\"state?store=0\" data-still"))
    }
  }
}
