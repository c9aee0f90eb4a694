#if HTTPCache
import Foundation
import HTTPTypes
import Testing

@testable import HTTPCachingRules

/// RFC 9111, section 4.2.4, and RFC 5861, section 4.
struct FailureTests {
  private func failing(
    _ fields: HTTPFields, _ request: HTTPFields = [:], after seconds: Double = 100, status: Int?,
    mode: HTTPCacheMode = .shared, policy: HTTPCachePolicy = .standard
  ) throws -> Session.Result {
    var session = Session(mode)
    try session.store(fields)
    return try session.request(.get, "/", request, policy: policy, at: seconds) { _ in
      status.map { .init(status: $0, body: "error") }
    }
  }

  @Test("4.2.4: a stale response answers if the origin can't be reached")
  func disconnected() throws {
    let result = try failing([.cacheControl: "max-age=1", .eTag: "\"a\""], status: nil)
    #expect(result.status == 200)
    #expect(result.body == "body")
    #expect(result.cache.detail == "disconnected")
    #expect(result.cache.isStale)
    #expect(!result.cache.isHit)
  }

  @Test("5.2.2: directives that forbid it are answered by 504")
  func forbidden() throws {
    for (directive, shared, own) in [
      ("must-revalidate", 504, 504), ("proxy-revalidate", 504, 200), ("s-maxage=1", 504, 200), ("no-cache", 504, 504),
    ] {
      let fields: HTTPFields = [.cacheControl: "max-age=1, \(directive)", .eTag: "\"a\""]
      #expect(try failing(fields, status: nil).status == shared, "\(directive)")
      #expect(try failing(fields, status: nil, mode: .private).status == own, "\(directive)")
    }
  }

  @Test("A request that demands the origin gets the error")
  func demanded() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=1", .eTag: "\"a\""]
    #expect(try failing(fields, [.cacheControl: "no-cache"], status: nil).status == 0)
    #expect(try failing(fields, [.cacheControl: "max-age=5"], status: nil).status == 0)
    #expect(try failing(fields, [.cacheControl: "max-stale=5"], status: nil).status == 0)
    #expect(try failing(fields, [.cacheControl: "max-stale"], after: 200, status: nil).status == 200)
    for policy in [HTTPCachePolicy.reload, .revalidate, .reloadEndToEnd] {
      #expect(try failing(fields, status: nil, policy: policy).status == 0)
    }
    var session = Session()
    #expect(try session.request { _ in nil }.status == 0)
    #expect(try session.request(.post) { _ in nil }.status == 0)
  }

  @Test func `An expected error is decided on like one that was received, but refuses nothing`() throws {
    for (directives, isDisconnectedAnswered, isErrorAnswered) in [
      ("max-age=1", true, false), ("max-age=1, stale-if-error=99", true, true),
      ("max-age=1, stale-if-error=98", true, false), ("max-age=1, stale-if-error=99, must-revalidate", false, false),
    ] {
      var rules = HTTPCacheRules(mode: .shared)
      rules.name = "MyCache"
      let stored = StoredResponse(
        url: "https://a.example/", status: 200, fields: [.cacheControl: directives],
        selecting: SelectingFields(sets: [[]]),
        requestTime: Date(timeIntervalSince1970: 0), responseTime: Date(timeIntervalSince1970: 0), length: 0)
      let request = HTTPRequest(method: .get, scheme: "https", authority: "a.example", path: "/")
      let now = Date(timeIntervalSince1970: 100)
      guard case .forward(let exchange) = rules.decide(request: request, url: stored.url, stored: [stored], now: now)
      else {
        Issue.record("\(directives) is answered")
        continue
      }
      switch rules.decide(failureOf: exchange, now: now) {
      case .answer(let reuse): #expect(isDisconnectedAnswered && reuse.status.detail == "disconnected", "\(directives)")
      case .refuse(let head, let status):
        #expect(!isDisconnectedAnswered && status.detail == "disconnected", "\(directives)")
        #expect(head.headerFields[.cacheStatus]?.contains("MyCache;fwd=stale;detail=disconnected") == true)
      case .fail: Issue.record("\(directives) fails")
      }
      switch rules.decide(failureOf: exchange, by: .errorResponse, now: now) {
      case .answer(let reuse):
        #expect(isErrorAnswered && reuse.status.detail == nil && reuse.status.isStale, "\(directives)")
      case .refuse: Issue.record("\(directives) refuses")
      case .fail: #expect(!isErrorAnswered, "\(directives)")
      }
    }
  }

  @Test(arguments: [500, 502, 503, 504])
  func `RFC 5861, 4: stale-if-error, on either side`(status: Int) throws {
    let fields: HTTPFields = [.cacheControl: "max-age=1, stale-if-error=99", .eTag: "\"a\""]
    #expect(try failing(fields, status: status).body == "body")
    #expect(try failing(fields, after: 101, status: status).body == "error")
    #expect(try failing([.cacheControl: "max-age=1", .eTag: "\"a\""], status: status).body == "error")
    let request: HTTPFields = [.cacheControl: "stale-if-error=99"]
    #expect(try failing([.cacheControl: "max-age=1", .eTag: "\"a\""], request, status: status).body == "body")
    #expect(try failing(fields, [.ifMatch: "\"a\""], status: status).body == "error")
    let forbidden: HTTPFields = [.cacheControl: "max-age=1, stale-if-error=99, must-revalidate", .eTag: "\"a\""]
    #expect(try failing(forbidden, status: status).body == "error")
  }

  @Test(arguments: [400, 404, 501, 505])
  func `Other errors are the answer`(status: Int) throws {
    let fields: HTTPFields = [.cacheControl: "max-age=1, stale-if-error=99", .eTag: "\"a\""]
    #expect(try failing(fields, status: status).body == "error")
  }
}
#endif
