#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import TestSupport
import Testing

/// A cache of whole responses in a dictionary.
// snippet.a-cache-in-a-dictionary
struct DictionaryCache {
  typealias Response = (head: HTTPResponse, body: [UInt8])
  typealias Origin = (HTTPRequest) async throws -> Response

  var rules = HTTPCacheRules(mode: .private)
  var now = { Date.now }
  private(set) var entries: [String: [(response: StoredResponse, body: [UInt8])]] = [:]

  mutating func response(to request: HTTPRequest, from origin: Origin) async throws -> Response {
    let url = try RequestURL(of: request).text
    let stored = (entries[url] ?? []).map(\.response)
    switch rules.decide(request: request, url: url, stored: stored, now: now()) {
    case .answer(let reuse): return answer(reuse, url)
    case .refuse(let head, _): return (head, [])
    case .forward(let exchange): return try await forward(exchange, to: origin)
    }
  }

  private mutating func forward(_ exchange: Exchange, to origin: Origin) async throws -> Response {
    let requestTime = now()
    let head: HTTPResponse
    let body: [UInt8]
    do {
      (head, body) = try await origin(exchange.forwarded)
    } catch {
      switch rules.decide(failureOf: exchange, now: now()) {
      case .answer(let reuse): return answer(reuse, exchange.url)
      case .refuse(let head, _): return (head, [])
      case .fail: throw error
      }
    }
    var decision = rules.decide(response: head, to: exchange, requestTime: requestTime, responseTime: now())
    let isWhole = decision.storing?.isWhole == true && (decision.expectedLength ?? Int64(body.count)) == body.count
    if decision.storing != nil, !isWhole { decision.refuseStoring(because: "incomplete", name: rules.name) }
    defer { change(decision, exchange.url, body) }
    switch decision.delivery {
    case .forwarded(let head): return (head, body)
    case .stored(let reuse), .combined(let reuse, _): return answer(reuse, exchange.url)
    case .again(let next): return try await forward(next, to: origin)
    }
  }

  private func answer(_ reuse: Reuse, _ url: String) -> Response {
    guard let range = reuse.bodyRange, let body = entries[url]?[reuse.position].body else { return (reuse.head, []) }
    return (reuse.head, Array(body[Int(range.lowerBound)..<Int(range.upperBound)]))
  }

  private mutating func change(_ decision: ResponseDecision, _ url: String, _ body: [UInt8]) {
    for url in decision.invalidated { entries[url] = nil }
    for (position, response) in decision.freshened { entries[url]?[position].response = response }
    let removed = decision.removed + (decision.storing?.replacing ?? [])
    var kept = (entries[url] ?? []).enumerated().filter { !removed.contains($0.offset) }.map(\.element)
    if var response = decision.storing?.response {
      response.length = Int64(body.count)
      kept.append((response, body))
    }
    entries[url] = kept.suffix(32)  // A client can make any number of variants.
  }
}
// snippet.end

/// The code of the pages of HTTPCachingRules, which use only its public declarations.
struct WritingACacheGuideTests {
  private static func request(_ fields: HTTPFields = [:], method: HTTPRequest.Method = .get) -> HTTPRequest {
    HTTPRequest(method: method, scheme: "https", authority: "example.com", path: "/", headerFields: fields)
  }

  private struct Unreachable: Error {}

  @Test func `a response is reused validated and served stale`() async throws {
    var cache = DictionaryCache()
    var time = Date(timeIntervalSince1970: 1_800_000_000)
    cache.now = { time }
    var asked: [HTTPRequest] = []
    func get(_ fields: HTTPFields = [:], _ origin: (HTTPRequest) throws -> DictionaryCache.Response) async throws
      -> (status: CacheStatus, code: Int, body: String)
    {
      let response = try await cache.response(to: Self.request(fields)) { request in
        asked.append(request)
        return try origin(request)
      }
      let field = try #require(response.head.headerFields[.cacheStatus])
      return (
        try #require(CacheStatus(fieldValue: field)), response.head.status.code,
        String(decoding: response.body, as: UTF8.self)
      )
    }
    let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
    let first = try await get { _ in (HTTPResponse(status: .ok, headerFields: fields), Array("0123456789".utf8)) }
    #expect(first.status.isStored && first.body == "0123456789")
    let second = try await get { _ in throw Unreachable() }
    #expect(second.status.isHit && second.body == "0123456789" && asked.count == 1)
    let part = try await get([.range: "bytes=2-4"]) { _ in throw Unreachable() }
    #expect(part.code == 206 && part.body == "234")
    time += 61
    let stale = try await get { _ in throw Unreachable() }
    #expect(stale.status.isStale && stale.body == "0123456789")
    let validated = try await get { _ in (HTTPResponse(status: .notModified, headerFields: fields), []) }
    #expect(validated.status.isValidated && validated.code == 200 && validated.body == "0123456789")
    #expect(asked.last?.headerFields[.ifNoneMatch] == "\"a\"")
    let fresh = try await get { _ in throw Unreachable() }
    #expect(fresh.status.isHit)
    _ = try await cache.response(to: Self.request(method: .put)) { _ in (HTTPResponse(status: .noContent), []) }
    await #expect(throws: Unreachable.self) { _ = try await get { _ in throw Unreachable() } }
  }

  @Test func `a cut body and a part are not stored`() async throws {
    for head in [
      HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60", .contentLength: "5"]),
      HTTPResponse(status: .partialContent, headerFields: [.cacheControl: "max-age=60", .contentRange: "bytes 0-3/9"]),
    ] {
      var cache = DictionaryCache()
      let response = try await cache.response(to: Self.request([.range: "bytes=0-3"])) { _ in (head, [1, 2, 3, 4]) }
      let status = try #require(response.head.headerFields[.cacheStatus])
      #expect(status == "Larder;fwd=uri-miss;fwd-status=\(head.status.code);detail=not-stored-incomplete")
      #expect(cache.entries.values.map(\.count) == [0])
    }
  }

  @Test func `variants are bounded`() async throws {
    var cache = DictionaryCache()
    let head = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60", .vary: "Accept-Language"])
    for number in 0..<40 {
      _ = try await cache.response(to: Self.request([.acceptLanguage: "a\(number)"])) { _ in (head, []) }
    }
    #expect(cache.entries.values.map(\.count) == [32])
  }

  @Test func `fields are parsed`() throws {
    let response = HTTPResponse(
      status: .ok, headerFields: [.cacheControl: "private, max-age=60", .expires: "Sun, 06 Nov 1994 08:49:37 GMT"])

    // snippet.overview
    let control = CacheControl(response.headerFields)
    print(control.isPrivate, control.maxAge ?? 0)
    let expires = HTTPDate(response.headerFields[.expires]?.utf8 ?? "".utf8, received: Date.now.timeIntervalSince1970)
    print(expires?.seconds ?? 0)
    // snippet.end

    #expect(control.isPrivate && control.maxAge == 60)
    #expect(expires?.seconds == 784_111_777)
    #expect(CacheControl(HTTPFields()) == CacheControl())
  }

  @Test func `a stored response has a freshness`() {
    let rules = HTTPCacheRules(mode: .private)
    let now = Date(timeIntervalSince1970: 1_800_000_000)
    let response = StoredResponse(
      url: "https://example.com/", status: 200, fields: [.cacheControl: "max-age=60"],
      selecting: SelectingFields(sets: [[]]), requestTime: now, responseTime: now, length: 0)

    // snippet.reading-fields
    let freshness = rules.freshness(of: response, at: now)
    print(freshness.isFresh, freshness.lifetime - freshness.age)
    // snippet.end

    #expect(freshness.isFresh && freshness.lifetime == 60 && freshness.age == 0)
  }
}
#endif
