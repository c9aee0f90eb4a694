#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// The key of a request is made from the same target as what is forwarded.
@Suite struct RequestTargetTests {
  private let host: HTTPField.Name

  init() throws {
    host = try #require(HTTPField.Name("Host"))
  }

  private func target(
    _ path: String, authority: String = "example.com", hosts: [String] = []
  ) throws -> RequestTarget {
    var request = HTTPRequest(method: .get, scheme: "https", authority: authority, path: path)
    request.headerFields[values: host] = hosts
    return try RequestTarget(request, HTTPCacheQueryKey())
  }

  @Test func `a fragment is refused`() async throws {
    let test = try await CacheUnderTest(.shared)
    let origin = Origin { request, _ in
      let status: HTTPResponse.Status = request.path == "/a" ? .ok : .notFound
      return HTTPForwardedResponse(head: head(status, [.cacheControl: "max-age=60"]), body: [])
    }
    for path in ["/a#evil", "/#", "/a?b#c", "#"] {
      let error = await #expect(throws: HTTPCacheError.self) { try await test.get(path, from: origin) }
      #expect(error?.code == .invalidURL)
    }
    #expect(origin.count == 0)
    #expect(try await test.get("/a", from: origin).head.status == .ok)
  }

  @Test func `several hosts are refused`() throws {
    for hosts in [
      ["example.com", "evil"], ["a", "b"], ["example.com", "example.com"], [""], ["a/b"], ["a@b"], ["a b"],
    ] {
      let error = #expect(throws: HTTPCacheError.self, "\(hosts)") { try target("/", hosts: hosts) }
      #expect(error?.code == .invalidURL)
    }
  }

  @Test func `a host counts if it is not the authority`() throws {
    for hosts in [[], ["example.com"], ["EXAMPLE.com:443"]] {
      let target = try target("/", authority: "Example.com", hosts: hosts)
      #expect(target.request.authority == "example.com" && target.request.headerFields.isEmpty)
      #expect(target.partition(in: [1]) == [1])
    }
    let other = try target("/", hosts: ["Other.example:443"])
    #expect(other.request.headerFields[host] == "other.example")
    #expect(other.partition(in: Array("p".utf8)) == Array("Host: other.example\np".utf8))
    // A partition of the user's that looks like one with a host is another one.
    #expect(try target("/").partition(in: other.partition(in: [])) != other.partition(in: []))
  }

  @Test func `two hosts have responses of their own`() async throws {
    let test = try await CacheUnderTest(.shared)
    let origin = Origin { [host] request, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]), body: Array((request.headerFields[host] ?? "").utf8))
    }
    for _ in 0..<2 {
      for name in ["evil.example", "example.com", "good.example"] {
        let body = try await test.get("/", [host: name], from: origin).body
        #expect(body == (name == "example.com" ? "" : name))
      }
    }
    #expect(origin.count == 3)
    try await test.cache.invalidate("https://example.com/")
    _ = try await test.get("/", [host: "evil.example"], from: origin)
    #expect(origin.count == 4, "an invalidation is for all hosts")
  }

  // MARK: Generated requests

  private static let pieces = [
    "/", "/", "/a", "?", "&", "=", "b", "#", "%2e", "%2F", "..", ".", "//", "*", ";", ":", "@", "|", "\\", " ", "\t",
    "\n", "\0", "\r\n", "é", "e\u{301}", "\u{212A}", "http://evil.example/", "https://example.com", "A", "utm_x=1",
    "[", "]", "\"", "%", "\u{7F}",
  ]
  private static let authorities = [
    "example.com", "Example.COM", "example.com:443", "example.com:80", "example.com:", "other.example",
    "user@example.com",
    "exa mple.com", "[::1]", "[::1]:443", "e\u{301}.example", "é.example", "", "example.com/a", "example.com#", "a,b",
  ]

  private func request(using generator: inout SeededGenerator) -> HTTPRequest {
    func pick(_ texts: [String]) -> String { texts.randomElement(using: &generator) ?? "" }
    let pieces = (0..<Int.random(in: 0...5, using: &generator)).map { _ in pick(Self.pieces) }
    let path = (Int.random(in: 0..<8, using: &generator) > 0 ? "/" : "") + pieces.joined()
    var request = HTTPRequest(
      method: .get, scheme: pick(["https", "https", "http", "HTTPS", ""]), authority: pick(Self.authorities), path: path
    )
    let count = [0, 0, 0, 0, 1, 1, 2].randomElement(using: &generator) ?? 0
    request.headerFields[values: host] = (0..<count).map { _ in pick(Self.authorities) }
    return request
  }

  /// The bytes of a forwarded request that say which resource it is for.
  private func bytes(of request: HTTPRequest) -> [[UInt8]] {
    [request.scheme, request.authority, request.path].map { Array(($0 ?? "-").utf8) }
      + request.headerFields[values: host].map { Array($0.utf8) }
  }

  @Test func `the key of every request is the key of what is forwarded`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "targets of requests")
    let test = try await CacheUnderTest(.shared)
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]))
    var forwarded: [[[UInt8]]: [[UInt8]]] = [:]
    var acceptedCount = 0
    for number in 0..<(TestDepth.isShort ? 10_000 : 100_000) {
      let request = request(using: &generator)
      guard let target = try? RequestTarget(request, HTTPCacheQueryKey()) else { continue }
      acceptedCount += 1
      let comment: Comment = "seed \(seed), request \(number)"
      // Byte for byte, because two texts with other bytes can be equal.
      let url = try RequestURL(of: target.request)
      #expect(url.text.utf8.elementsEqual(target.url.utf8), comment)
      #expect(url.target.utf8.elementsEqual(target.request.path?.utf8 ?? "".utf8), comment)
      #expect(url.authority.utf8.elementsEqual(target.request.authority?.utf8 ?? "".utf8), comment)
      let hosts = target.request.headerFields[values: host]
      #expect(hosts.count <= 1 && hosts.allSatisfy { $0 != url.authority }, comment)
      let partition = target.partition(in: [])
      #expect(partition == hosts.first.map { Array("Host: \($0)\n".utf8) } ?? [], comment)
      // No two requests with the same key are forwarded with other bytes.
      let key = [Array(target.url.utf8), partition]
      let bytes = bytes(of: target.request)
      #expect(forwarded[key] ?? bytes == bytes, comment)
      forwarded[key] = bytes
      guard acceptedCount % 50 == 0 else { continue }
      // The cache forwards this target, and what was forwarded finds the response.
      let count = origin.count
      _ = try await test.cache.response(to: request) { try await origin($0) }.body.bytes(upTo: 100)
      guard origin.count > count, let sent = origin.received.last else { continue }
      #expect(self.bytes(of: sent) == bytes, comment)
      let found = try await test.cache.response(to: sent, policy: .cacheOnly) { try await origin($0) }
      #expect(found.cacheStatus.isHit, comment)
    }
    #expect(acceptedCount > 1_000)
    print("\(acceptedCount) requests with \(forwarded.count) keys were accepted")
  }
}

/// The queries that count in the key.
@Suite struct HTTPCacheQueryKeyTests {
  @Test(arguments: [
    ("https://a/b", "https://a/b"), ("https://a/b?", "https://a/b?"), ("https://a/b?utm_source=x", "https://a/b"),
    ("https://a/b?c=1&utm_source=x&d=2", "https://a/b?c=1&d=2"), ("https://a/b?utm=1", "https://a/b?utm=1"),
    ("https://a/b?fbclid", "https://a/b"), ("https://a/b?fbclid2=1", "https://a/b?fbclid2=1"),
    ("https://a/b?%75tm_source=x", "https://a/b?%75tm_source=x"), ("https://a/b?c=?utm_x=1", "https://a/b?c=?utm_x=1"),
    ("https://a/b?&&c", "https://a/b?&&c"), ("https://a/b?UTM_x=1", "https://a/b?UTM_x=1"),
  ])
  func ignoredNames(url: String, key: String) {
    let queryKey = HTTPCacheQueryKey(ignoring: ["utm_*", "fbclid"])
    #expect(queryKey.key(of: url) == key)
    #expect(queryKey.key(of: key) == key)
    #expect(HTTPCacheQueryKey().key(of: url) == url)
  }

  @Test func `the order can be ignored`() {
    let queryKey = HTTPCacheQueryKey(ignoring: ["x"], ignoresOrder: true)
    for url in ["https://a/?b=2&a=1&b=1", "https://a/?b=2&b=1&a=1", "https://a/?x&a=1&b=2&x=3&b=1"] {
      #expect(queryKey.key(of: url) == "https://a/?a=1&b=2&b=1")
    }
    #expect(queryKey.key(of: "https://a/?b=1&b=2") != queryKey.key(of: "https://a/?b=2&b=1"))
    #expect(HTTPCacheQueryKey(ignoring: ["*"]).key(of: "https://a/?b=1&") == "https://a/")
  }

  @Test func `what is ignored is forwarded`() async throws {
    var configuration = HTTPCacheConfiguration.shared
    configuration.queryKey = HTTPCacheQueryKey(ignoring: ["utm_*"], ignoresOrder: true)
    let test = try await CacheUnderTest(configuration)
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]))
    for path in ["/p?b=1&utm_source=x&a=2", "/p?a=2&b=1", "/p?utm_medium=y&a=2&b=1"] {
      _ = try await test.get(path, from: origin)
    }
    #expect(origin.received.map(\.path) == ["/p?b=1&utm_source=x&a=2"])
    // Every form of the URL invalidates the response, and finds it.
    let inspector = try HTTPCacheInspector(test.store, configuration: test.cache.configuration)
    #expect(try await inspector.responses(to: "https://example.com/p?utm_z&b=1&a=2").count == 1)
    _ = try await test.get("/p?a=2&utm_source=z&b=1", method: .post, from: origin)
    _ = try await test.get("/p?a=2&b=1", from: origin)
    try await test.cache.invalidate("https://example.com/p?utm_source=x&b=1&a=2")
    _ = try await test.get("/p?a=2&b=1", from: origin)
    #expect(origin.count == 4)
    // So does a location that an origin names.
    origin.set { _, _ in
      HTTPForwardedResponse(head: head(.created, [.location: "/p?b=1&a=2&utm_source=x"]), body: [])
    }
    _ = try await test.get("/other", method: .post, from: origin)
    #expect(try await inspector.responses(to: "https://example.com/p?a=2&b=1").isEmpty)
  }

  @Test func `names are checked`() async throws {
    for name in ["", "a=b", "a*b", "**", "a&b", "#"] {
      var configuration = HTTPCacheConfiguration.shared
      configuration.queryKey.ignoredNames = [name]
      let error = await #expect(throws: HTTPCacheError.self) { try await CacheUnderTest(configuration) }
      #expect(error?.code == .invalidConfiguration)
    }
  }
}
#endif
