#if HTTPCache
import Foundation
import HTTPTypes
import Testing

@testable import HTTPCachingRules

/// RFC 9111, sections 4.1, 4.2 and 5.
struct ReuseTests {
  private func isHit(
    _ fields: HTTPFields, after seconds: Double, mode: HTTPCacheMode = .shared, _ request: HTTPFields = [:],
    policy: HTTPCachePolicy = .standard, delay: Double = 0
  ) throws -> Bool {
    var session = Session(mode)
    _ = try session.request { _ in .init(fields: fields, delay: delay) }
    let result = try session.request(.get, "/", request, policy: policy, at: seconds)
    #expect(result.isHit == result.cache.isHit)
    return result.isHit
  }

  @Test("4.2.1: the order of s-maxage, max-age, Expires and heuristics")
  func lifetimes() throws {
    for (fields, shared, own) in [
      ([.cacheControl: "max-age=60"], 60, 60), ([.cacheControl: "max-age=60", .expires: dateText(10)], 60, 60),
      ([.cacheControl: "max-age=60", .expires: "0"], 60, 60), ([.expires: dateText(60)], 60, 60),
      ([.cacheControl: "max-age=60, s-maxage=10"], 10, 60), ([.cacheControl: "max-age=10, s-maxage=60"], 60, 10),
      ([.lastModified: dateText(-600)], 60, 60), ([.lastModified: dateText(-600), .expires: dateText(10)], 10, 10),
      ([.lastModified: dateText(-10_000_000)], 86_400, 86_400),
    ] as [(HTTPFields, Double, Double)] {
      #expect(try isHit(fields, after: shared - 1))
      #expect(try !isHit(fields, after: shared))
      #expect(try isHit(fields, after: own - 1, mode: .private))
      #expect(try !isHit(fields, after: own, mode: .private))
    }
  }

  @Test func `4.2.1: freshness that is invalid, or given twice with different values, is ignored`() throws {
    for fields in [
      [.cacheControl: "max-age=60, max-age=70", .eTag: "\"a\""], [.cacheControl: "max-age=x", .eTag: "\"a\""],
      [.expires: "0", .eTag: "\"a\""], [.expires: dateText(60), .expires: dateText(61), .eTag: "\"a\""],
      [.date: dateText(400), .expires: dateText(300), .eTag: "\"a\""],
    ] as [HTTPFields] {
      #expect(try !isHit(fields, after: 0))
    }
    #expect(try isHit([.expires: dateText(60), .expires: dateText(60)], after: 1))
  }

  @Test("4.2.3: Age, Date and the response delay count as age")
  func ages() throws {
    #expect(try !isHit([.cacheControl: "max-age=60", .age: "60"], after: 0))
    #expect(try isHit([.cacheControl: "max-age=60", .age: "58"], after: 1))
    #expect(try isHit([.cacheControl: "max-age=60", .age: "0, 100"], after: 1))
    #expect(try !isHit([.cacheControl: "max-age=60", .age: "100, 0"], after: 1))
    #expect(try isHit([.cacheControl: "max-age=60", .age: "x"], after: 1))
    #expect(try !isHit([.cacheControl: "max-age=60", .age: "99999999999999999999"], after: 1))
    #expect(try !isHit([.cacheControl: "max-age=60", .date: dateText(-60)], after: 0))
    #expect(try !isHit([.cacheControl: "max-age=60"], after: 60, delay: 10))
    #expect(try isHit([.cacheControl: "max-age=60"], after: 59.5))
    // Both count together: a response that was 30 seconds old when it was sent, and took 31 seconds to arrive.
    #expect(try !isHit([.cacheControl: "max-age=60", .age: "30"], after: 31, delay: 31))
  }

  @Test func `5.1: a reused response has its age`() throws {
    var session = Session()
    try session.store([.cacheControl: "max-age=60", .age: "5"])
    let hit = try session.request(at: 3.9)
    #expect(hit.fields[.age] == "8")
    #expect(hit.fields[.date] == dateText(0))
  }

  @Test("4.2.4: directives that forbid serving stale responses")
  func stale() throws {
    let request: HTTPFields = [.cacheControl: "max-stale"]
    #expect(try isHit([.cacheControl: "max-age=1"], after: 100, request))
    #expect(try isHit([.cacheControl: "max-age=1"], after: 100, [.cacheControl: "max-stale=99"]))
    #expect(try !isHit([.cacheControl: "max-age=1"], after: 101, [.cacheControl: "max-stale=99"]))
    for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=1"] {
      #expect(try !isHit([.cacheControl: "max-age=1, \(directive)"], after: 100, request), "\(directive)")
      let isAllowed = directive != "must-revalidate"
      #expect(try isHit([.cacheControl: "max-age=1, \(directive)"], after: 100, mode: .private, request) == isAllowed)
    }
    #expect(try !isHit([.cacheControl: "max-age=1, no-cache", .eTag: "\"a\""], after: 0, request))
  }

  @Test func `5.2.1: max-age, min-fresh, no-cache, and Pragma if there is no Cache-Control`() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60"]
    #expect(try isHit(fields, after: 10, [.cacheControl: "max-age=10"]))
    #expect(try !isHit(fields, after: 11, [.cacheControl: "max-age=10"]))
    #expect(try !isHit(fields, after: 0, [.cacheControl: "max-age=0"]))
    #expect(try isHit(fields, after: 10, [.cacheControl: "min-fresh=50"]))
    #expect(try !isHit(fields, after: 11, [.cacheControl: "min-fresh=50"]))
    #expect(try !isHit(fields, after: 1, [.cacheControl: "no-cache"]))
    #expect(try !isHit(fields, after: 1, [.pragma: "no-cache"]))
    #expect(try isHit(fields, after: 1, [.pragma: "no-cache", .cacheControl: "foo"]))
    #expect(try isHit(fields, after: 1, [.cacheControl: "no-store"]))
  }

  @Test func `5.2.1.7: only-if-cached is answered by 504 if nothing can be reused`() throws {
    var session = Session()
    let request: HTTPFields = [.cacheControl: "only-if-cached"]
    var result = try session.request(.get, "/", request)
    #expect(result.status == 504)
    #expect(result.forwarded.isEmpty)
    try session.store([.cacheControl: "max-age=60, stale-while-revalidate=60", .eTag: "\"a\""])
    result = try session.request(.get, "/", request, at: 1)
    #expect(result.status == 200)
    result = try session.request(.get, "/", request, at: 70)
    #expect(result.status == 200)
    #expect(result.forwarded.isEmpty)
    result = try session.request(.get, "/", request, at: 200)
    #expect(result.status == 504)
    #expect(result.forwarded.isEmpty)
  }

  @Test("RFC 8246: a reload doesn't validate a fresh response with immutable")
  func immutable() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60, immutable", .eTag: "\"a\""]
    #expect(try isHit(fields, after: 1, [.cacheControl: "max-age=0"]))
    #expect(try !isHit(fields, after: 61, [.cacheControl: "max-age=0"]))
    #expect(try !isHit(fields, after: 1, [.cacheControl: "no-cache"]))
  }

  @Test func `RFC 5861, 3: stale-while-revalidate serves a stale response and refreshes it behind`() throws {
    var session = Session()
    try session.store([.cacheControl: "max-age=1, stale-while-revalidate=10", .eTag: "\"a\""])
    let stale = try session.request(.get, "/", [.range: "bytes=0-1"], at: 5) { _ in
      .init(status: 304, fields: [.eTag: "\"a\""])
    }
    #expect(stale.status == 206)
    #expect(stale.cache.isStale)
    #expect(stale.forwarded.count == 1)
    #expect(stale.forwarded[0].headerFields[.ifNoneMatch] == "\"a\"")
    #expect(stale.forwarded[0].headerFields[.range] == nil)
    #expect(try session.request(at: 5.5).cache.isHit)
    // The client doesn't wish a stale response (RFC 9111, section 5.2.1.1).
    #expect(try !session.request(.get, "/", [.cacheControl: "max-age=60"], at: 9).isHit)
    #expect(try session.request(at: 30).forwarded.count == 1)
    #expect(try !session.request(at: 30).cache.isStale)
  }

  @Test("4.1: Vary")
  func vary() throws {
    var session = Session()
    try session.store(
      [.cacheControl: "max-age=60", .vary: "Color, Accept", .vary: "accept"], body: "1", for: [.color: "1"])
    #expect(try session.request(.get, "/", [.color: "1"], at: 1).isHit)
    #expect(try session.request(.get, "/", [.color: "1", .userAgent: "x"], at: 1).isHit)
    for fields in [[:], [.color: "2"], [.color: "1", .accept: "a"]] as [HTTPFields] {
      let result = try session.request(.get, "/", fields, at: 1) { _ in .init(fields: [:]) }
      #expect(result.cache.forward == .varyMiss)
    }
  }

  @Test func `4.1: the most recent of the responses that match is used`() throws {
    var session = Session()
    try session.store(
      [.cacheControl: "max-age=600", .vary: "Color", .date: dateText(0)], body: "1", for: [.color: "1"])
    try session.store([.cacheControl: "max-age=600", .date: dateText(-5)], body: "2", at: 1)
    #expect(session.stored().count == 2)
    #expect(try session.request(.get, "/", [.color: "1"], at: 2).body == "1")
    #expect(try session.request(.get, "/", [.color: "2"], at: 2).body == "2")
  }

  @Test(arguments: [
    ("color", ["1, 2"], ["1", "2"], true), ("color", ["1,2"], [" 1, 2 "], true), ("color", ["1,2"], ["2,1"], false),
    ("color", ["a"], ["A"], false), ("color", ["\"a , b\""], ["\"a,b\""], false),
    ("accept-language", ["en, de"], ["De ,  eN"], true),
    ("accept-encoding", ["gzip;q=0.5, br"], ["br, gzip ; q=0.5"], true),
    ("accept", ["text/html;level=A"], ["text/html;level=a"], false), ("accept", ["Text/HTML"], ["text/html"], true),
    ("accept", ["text/html;level=\"A\""], ["text/html;level=\"B\""], false),
    ("user-agent", ["a, b"], ["a,b"], false), ("cookie", ["a=1", "b=2"], ["a=1; b=2"], true),
    ("cookie", ["a=1; b=2"], ["b=2; a=1"], false),
  ])
  func `4.1: selecting fields are compared in a normal form`(
    name: String, one: [String], other: [String], isEqual: Bool
  ) {
    let forms = [one, other].map { lines in
      RequestValues.normalized(lines.map { Array($0.utf8) }, of: name)
    }
    #expect((forms[0] == forms[1]) == isEqual)
  }

  @Test("Policies")
  func policies() throws {
    let fresh: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
    for (policy, isFreshHit, isStaleHit) in [
      (.standard, true, false), (.preferCache, true, true), (.cacheOnly, true, true), (.reload, false, false),
      (.revalidate, false, false), (.reloadEndToEnd, false, false),
    ] as [(HTTPCachePolicy, Bool, Bool)] {
      #expect(try isHit(fresh, after: 1, policy: policy) == isFreshHit, "\(policy)")
      #expect(try isHit(fresh, after: 100, policy: policy) == isStaleHit, "\(policy)")
      #expect(try !isHit([.cacheControl: "no-cache", .eTag: "\"a\""], after: 1, policy: policy), "\(policy)")
    }
    var session = Session()
    #expect(try session.request(policy: .cacheOnly).status == 504)
    try session.store(fresh)
    #expect(try session.request(policy: .reload, at: 1).forwarded[0].headerFields[.ifNoneMatch] == nil)
    try session.store(fresh)
    let validated = try session.request(policy: .revalidate, at: 1) { _ in .init(status: 304, fields: [.eTag: "\"a\""])
    }
    #expect(validated.forwarded[0].headerFields[.cacheControl] == "max-age=0")
    #expect(validated.cache.isValidated)
    let reloaded = try session.request(policy: .reloadEndToEnd, at: 2)
    #expect(reloaded.forwarded[0].headerFields[.cacheControl] == "no-cache")
    #expect(reloaded.forwarded[0].headerFields[.ifNoneMatch] == nil)
  }

  @Test("Requests that may wait for the response to another one")
  func collapsing() throws {
    let rules = HTTPCacheRules(mode: .shared)
    func request(_ fields: HTTPFields = [:], _ method: HTTPRequest.Method = .get) -> HTTPRequest {
      HTTPRequest(method: method, scheme: "https", authority: "example.com", path: "/", headerFields: fields)
    }
    #expect(rules.mayCollapse(request(), policy: .standard))
    #expect(!rules.mayCollapse(request(), policy: .reload))
    #expect(!rules.mayCollapse(request([:], .head), policy: .standard))
    for fields in [
      [.range: "bytes=0-1"], [.ifNoneMatch: "\"a\""], [.ifMatch: "\"a\""], [.cacheControl: "no-cache"],
      [.cacheControl: "max-age=5"], [.cacheControl: "no-store"], [.contentLength: "1"], [.ifModifiedSince: "x"],
    ] as [HTTPFields] {
      #expect(!rules.mayCollapse(request(fields), policy: .standard))
    }
    let now = Date(timeIntervalSince1970: Double(Session.start))
    var values = RequestValues([.color: "1"])
    func response(_ control: String) -> StoredResponse {
      StoredResponse(
        url: "https://example.com/", status: 200, fields: [.cacheControl: control, .vary: "Color"],
        selecting: SelectingFields(names: ["color"], in: &values), requestTime: now, responseTime: now, length: nil)
    }
    let url = "https://example.com/"
    let shared = rules.share(response("max-age=60"), with: request([.color: "1"]), url: url, now: now)
    #expect(shared?.answer == .whole)
    #expect(shared?.status.isCollapsed == true)
    #expect(rules.share(response("max-age=60"), with: request([.color: "2"]), url: url, now: now) == nil)
    #expect(rules.share(response("max-age=0"), with: request([.color: "1"]), url: url, now: now) == nil)
    #expect(rules.share(response("no-cache"), with: request([.color: "1"]), url: url, now: now) == nil)
  }
}
#endif
