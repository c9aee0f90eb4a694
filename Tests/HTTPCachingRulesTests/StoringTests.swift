#if HTTPCache
import Foundation
import HTTPTypes
import Testing

@testable import HTTPCachingRules

/// RFC 9111, section 3.
struct StoringTests {
  private func isStored(
    _ fields: HTTPFields, status: Int = 200, mode: HTTPCacheMode = .shared, for request: HTTPFields = [:],
    _ change: (inout HTTPCacheRules) -> Void = { _ in }
  ) throws -> Bool {
    var session = Session(mode, change)
    try session.store(fields, status: status, for: request)
    return !session.stored().isEmpty
  }

  @Test(arguments: [200, 203, 299, 302, 400, 404, 499, 500, 599])
  func `3: any final status with explicit freshness is stored`(status: Int) throws {
    #expect(try isStored([.cacheControl: "max-age=60"], status: status))
    #expect(try isStored([.expires: dateText(60)], status: status))
    #expect(try isStored([.cacheControl: "s-maxage=60"], status: status))
  }

  @Test(arguments: [304, 407, 412, 416, 417])
  func `3: a status that answers a condition, a range or an expectation isn't stored`(status: Int) throws {
    #expect(try !isStored([.cacheControl: "max-age=60"], status: status))
  }

  @Test func `4.2.2: without explicit freshness, a status must allow heuristics, or the response be public`() throws {
    for status in 200..<600 where ![206, 304].contains(status) {
      let isAllowed = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
      #expect(try isStored([.lastModified: dateText(-1_000)], status: status) == isAllowed, "\(status)")
    }
    #expect(try isStored([.lastModified: dateText(-1_000), .cacheControl: "public"], status: 599))
  }

  @Test func `A response to another method says why it isn't stored`() throws {
    let (rules, now) = (HTTPCacheRules(mode: .shared), Date(timeIntervalSince1970: 0))
    let request = HTTPRequest(method: .put, scheme: "https", authority: "a.example", path: "/")
    let decision = rules.decide(request: request, url: "https://a.example/", stored: [], now: now)
    guard case .forward(let exchange) = decision else {
      Issue.record("the request is not forwarded")
      return
    }
    let answer = rules.decide(
      response: HTTPResponse(status: .ok), to: exchange, requestTime: now, responseTime: now)
    #expect(answer.status.detail == "not-stored-method")
  }

  @Test("A response that nothing could reuse isn't stored")
  func useless() throws {
    #expect(try !isStored([:]))
    #expect(try !isStored([.cacheControl: "max-age=0"]))
    #expect(try !isStored([.cacheControl: "no-cache, max-age=60"]))
    #expect(try isStored([.eTag: "\"a\""]))
    #expect(try isStored([.cacheControl: "no-cache", .eTag: "\"a\""]))
    #expect(try isStored([.cacheControl: "max-age=0, stale-if-error=60"]))
  }

  @Test func `A head of the largest size is stored, and a larger one isn't`() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60", .date: dateText(0)]
    let size = "Cache-Control".count + "max-age=60".count + "Date".count + dateText(0).count
    #expect(try isStored(fields) { $0.largestHead = size })
    #expect(try !isStored(fields) { $0.largestHead = size - 1 })
  }

  @Test func `5.2.1.5, 5.2.2.5: no-store on either side`() throws {
    #expect(try !isStored([.cacheControl: "max-age=60, no-store"]))
    #expect(try !isStored([.cacheControl: "max-age=60"], for: [.cacheControl: "no-store"]))
  }

  @Test
  func `5.2.2.3: must-understand overrides no-store if the status is understood, and forbids storing if it isn't`()
    throws
  {
    #expect(try isStored([.cacheControl: "max-age=60, no-store, must-understand"]))
    #expect(try !isStored([.cacheControl: "max-age=60, no-store, must-understand"], status: 599))
    #expect(try !isStored([.cacheControl: "max-age=60, must-understand"], status: 299))
  }

  @Test func `5.2.2.7: private`() throws {
    #expect(try !isStored([.cacheControl: "max-age=60, private"]))
    #expect(try isStored([.cacheControl: "max-age=60, private"], mode: .private))
  }

  @Test("3.5: Authorization in a shared cache")
  func authorization() throws {
    let request: HTTPFields = [.authorization: "Basic eA=="]
    #expect(try !isStored([.cacheControl: "max-age=60"], for: request))
    #expect(try isStored([.cacheControl: "max-age=60"], mode: .private, for: request))
    for directive in ["public", "must-revalidate", "s-maxage=60"] {
      #expect(try isStored([.cacheControl: "max-age=60, \(directive)"], for: request), "\(directive)")
    }
  }

  @Test func `3.1: fields of the connection aren't stored`() throws {
    var session = Session()
    let names = [
      "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection", "TE",
      "Trailer", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "A",
    ]
    var fields: HTTPFields = [.cacheControl: "max-age=60", .connection: "a, close"]
    for name in names { fields[HTTPField.Name.named(name)] = "x" }
    fields[HTTPField.Name.named("B")] = "y"
    try session.store(fields)
    let hit = try session.request(at: 1)
    #expect(hit.isHit)
    for name in names + ["Connection"] { #expect(hit.fields[HTTPField.Name.named(name)] == nil, "\(name)") }
    #expect(hit.fields[HTTPField.Name.named("B")] == "y")
  }

  @Test("5.2.2.4, 5.2.2.7: the fields that no-cache and private name aren't stored")
  func qualified() throws {
    for mode in [HTTPCacheMode.shared, .private] {
      var session = Session(mode)
      try session.store([
        .cacheControl: "max-age=60, no-cache=\"color\", private=\"server\"", .color: "1", .server: "2",
      ])
      let hit = try session.request(at: 1)
      #expect(hit.isHit)
      #expect(hit.fields[.color] == nil)
      #expect(hit.fields[.server] == (mode == .shared ? nil : "2"))
    }
  }

  @Test func `A response that wants a field that decides on reuse not to be stored isn't stored`() throws {
    #expect(try !isStored([.cacheControl: "max-age=60", .connection: "cache-control"]))
    #expect(try !isStored([.cacheControl: "max-age=60, no-cache=\"vary\"", .vary: "Color"]))
    #expect(
      try !isStored([.cacheControl: "max-age=60", .targeted: "max-age=1", .connection: "cdn-cache-control"]) {
        $0.targetedFields = [.targeted]
      })
  }

  @Test("Set-Cookie isn't stored in a shared cache unless the response is for all clients, and a setting changes that")
  func cookies() throws {
    let heuristic: HTTPFields = [.lastModified: dateText(-1_000), .setCookie: "a=b"]
    let fresh: HTTPFields = [.cacheControl: "max-age=60", .setCookie: "a=b"]
    let isPublic: HTTPFields = [.cacheControl: "public, max-age=60", .setCookie: "a=b"]
    let shared: HTTPFields = [.cacheControl: "s-maxage=60", .setCookie: "a=b"]
    for (storing, mode, expected) in [
      (nil, .shared, [false, false, true, true]), (nil, .private, [true, true, true, true]),
      (.never, .private, [false, false, false, false]), (.ifPublic, .private, [false, false, true, true]),
      (.ifFresh, .shared, [false, true, true, true]), (.always, .shared, [true, true, true, true]),
    ] as [(SetCookieStoring?, HTTPCacheMode, [Bool])] {
      // In a private cache, `s-maxage` gives no freshness, so this response needs a validator to be stored at all.
      let stored = try [heuristic, fresh, isPublic, shared].map { fields in
        try isStored(fields.merging([.eTag: "\"a\""]), mode: mode) { rules in
          if let storing { rules.setCookieStoring = storing }
        }
      }
      #expect(stored == expected, "\(storing as Any), \(mode)")
    }
    let targeted: HTTPFields = [.targeted: "public, max-age=60", .setCookie: "a=b"]
    #expect(try isStored(targeted) { $0.targetedFields = [.targeted] })
  }

  @Test(arguments: [204])
  func `RFC 9110, 8.6: a status without a body has no Content-Length, and is stored as empty`(status: Int) throws {
    var session = Session()
    for length in ["5", "0", "x", "4, 5"] {
      let first = try session.store(
        [.cacheControl: "max-age=60", .contentLength: length, .eTag: "\"\(length)\""], status: status, body: "")
      #expect(first.fields[.contentLength] == nil)
      #expect(first.cache.isStored)
      #expect(session.stored().map(\.length) == [0])
      let hit = try session.request(at: 1)
      #expect(hit.isHit)
      #expect(hit.status == status)
      #expect(hit.fields[.contentLength] == nil)
      let head = try session.request(.head, at: 1)
      #expect(head.isHit)
      #expect(head.fields[.contentLength] == nil)
      _ = try session.request(.put)
    }
  }

  @Test("An interim response isn't stored", arguments: [100, 101, 103, 199])
  func interim(status: Int) throws {
    #expect(try !isStored([.cacheControl: "max-age=60"], status: status))
  }

  @Test("Limits on the head and on Vary")
  func limits() throws {
    let long = String(repeating: "x", count: 70_000)
    #expect(try !isStored([.cacheControl: "max-age=60", .color: long]))
    let names = (0...SelectingFields.largestFieldCount).map { "a\($0)" }.joined(separator: ",")
    #expect(try !isStored([.cacheControl: "max-age=60", .vary: names]))
    #expect(try !isStored([.cacheControl: "max-age=60", .vary: "*"]))
  }

  @Test("RFC 9112, 6.3: a Content-Length that is invalid isn't stored, and a transfer coding overrides a valid one")
  func contentLength() throws {
    #expect(try !isStored([.cacheControl: "max-age=60", .contentLength: "4, 5"]))
    #expect(try !isStored([.cacheControl: "max-age=60", .contentLength: "4", .contentLength: "5"]))
    #expect(try isStored([.cacheControl: "max-age=60", .contentLength: "4", .contentLength: "4"]))
    #expect(try !isStored([.cacheControl: "max-age=60", .contentLength: "5"]))
    var session = Session()
    try session.store([.cacheControl: "max-age=60", .contentLength: "5", .transferEncoding: "chunked"])
    #expect(try session.request(at: 1).fields[.contentLength] == "4")
  }

  @Test func `A request with a body goes past the cache`() throws {
    var session = Session()
    try session.store([.cacheControl: "max-age=60"], for: [.contentLength: "3"])
    #expect(session.stored().isEmpty)
    try session.store([.cacheControl: "max-age=60"])
    let result = try session.request(.get, "/", [.transferEncoding: "chunked"], at: 1)
    #expect(result.cache.forward == .bypass)
  }

  @Test("RFC 9110, 9.3.3: POST with Content-Location and explicit freshness serves later GETs")
  func post() throws {
    for (fields, isStored) in [
      ([.cacheControl: "max-age=60", .contentLocation: "/"], true), ([.cacheControl: "max-age=60"], false),
      ([.cacheControl: "max-age=60", .contentLocation: "/other"], false),
      ([.contentLocation: "/", .lastModified: dateText(-1_000)], false),
      ([.cacheControl: "max-age=60", .contentLocation: "https://EXAMPLE.com:443/"], true),
    ] as [(HTTPFields, Bool)] {
      var session = Session()
      let posted = try session.request(.post, "/", [.contentLength: "4"]) { _ in .init(fields: fields) }
      #expect(posted.cache.isStored == isStored)
      #expect(try session.request(at: 1).isHit == isStored)
      #expect(try !session.request(.post, "/", at: 1).isHit)
    }
  }

  @Test(arguments: [("4", "4"), ("x", nil), ("4, 5", nil)])
  func `RFC 9110, 8.6: a response whose Content-Length is no length is not stored`(length: String, stored: String?)
    throws
  {
    var session = Session()
    try session.store([.cacheControl: "max-age=60", .contentLength: length])
    #expect(session.stored().first?.fields[.contentLength] == stored)
  }

  @Test func `RFC 9110, 6.6.1: a response without Date is stored with the time of receipt`() throws {
    let rules = HTTPCacheRules(mode: .shared)
    let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/")
    let now = Date(timeIntervalSince1970: Double(Session.start))
    guard
      case .forward(let exchange) = rules.decide(
        request: request, url: "https://example.com/", policy: .standard, stored: [], now: now)
    else { return #expect(Bool(false), "a miss is forwarded") }
    let head = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"])
    let decision = rules.decide(response: head, to: exchange, requestTime: now, responseTime: now)
    #expect(decision.storing?.response.fields[.date] == dateText(0))
  }
}
#endif
