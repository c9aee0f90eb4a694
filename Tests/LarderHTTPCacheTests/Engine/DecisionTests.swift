#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// The decision of an inspector, which must be that of the cache for the same request.
@Suite struct DecisionTests {
  /// An origin with a response for each kind of decision.
  private let origin = Origin { request, _ in
    let fields: HTTPFields =
      switch request.path {
      case "/fresh": [.cacheControl: "max-age=60"]
      case "/stale": [.cacheControl: "max-age=1", .eTag: "\"1\""]
      case "/varies": [.cacheControl: "max-age=60", .vary: "Accept-Language"]
      default: [.cacheControl: "no-store"]
      }
    return HTTPForwardedResponse(head: head(.ok, fields), body: Array("body".utf8))
  }

  private struct Question: Sendable, CustomStringConvertible {
    let path: String
    var fields: HTTPFields = [:]
    var policy = HTTPCachePolicy.standard
    let forward: CacheStatus.ForwardReason?
    var candidates = 1
    var validates = false

    var description: String { "\(path) \(fields) \(policy)" }
  }

  @Test func `the decision is that of the cache and nothing is asked or changed`() async throws {
    let test = try await CacheUnderTest(.shared)
    for path in ["/fresh", "/stale", "/private"] { _ = try await test.get(path, from: origin) }
    for language in ["de", "en"] {
      _ = try await test.get("/varies", [.acceptLanguage: language], from: origin)
    }
    let cacheInspector = try HTTPCacheInspector(test.store, configuration: test.cache.configuration)
    // A response is stored after its body was read.
    for (path, count) in [("fresh", 1), ("stale", 1), ("varies", 2)] {
      try await waitUntil { try await cacheInspector.responses(to: "https://example.com/\(path)").count == count }
    }
    test.clock.advance(by: .seconds(10))
    // A copy, because the cache itself changes its records.
    let copy = MemoryStore<[UInt8]>()
    for try await entry in test.store.entries(in: .all) { try copy.apply([.set(entry.key, entry.value)]) }
    let inspector = try HTTPCacheInspector(copy, configuration: test.cache.configuration)
    let questions = [
      Question(path: "/fresh", forward: nil),
      Question(path: "/fresh", fields: [.cacheControl: "no-cache"], forward: .request),
      Question(path: "/stale", fields: [.cacheControl: "max-stale"], forward: nil),
      Question(path: "/stale", forward: .stale, validates: true),
      Question(path: "/stale", fields: [.cacheControl: "no-cache"], forward: .request, validates: true),
      Question(path: "/varies", fields: [.acceptLanguage: "en"], forward: nil, candidates: 2),
      Question(path: "/varies", fields: [.acceptLanguage: "fr"], forward: .varyMiss, candidates: 2),
      Question(path: "/private", forward: .uriMiss, candidates: 0),
      Question(path: "/none", forward: .uriMiss, candidates: 0),
    ]
    let count = origin.count
    let before = try copy.entries(in: .all, limit: .max, order: .ascending)
    for question in questions {
      let decision = try await inspector.decision(on: request(question.path, question.fields), policy: question.policy)
      #expect(decision.status.forward == question.forward, "\(question)")
      #expect(decision.status.isHit == (question.forward == nil), "\(question)")
      #expect((decision.answer != nil) == (question.forward == nil), "\(question)")
      #expect(decision.candidateCount == question.candidates, "\(question)")
      #expect(decision.validated.isEmpty != question.validates, "\(question)")
      let named = try await inspector.decision(onURL: "https://example.com\(question.path)", fields: question.fields)
      #expect(named.status.forward == question.forward, "\(question)")
    }
    #expect(origin.count == count)
    #expect(try copy.entries(in: .all, limit: .max, order: .ascending) == before)
    // The cache decides the same, and changes what is stored.
    for question in questions {
      let status = try await test.get(question.path, question.fields, policy: question.policy, from: origin).status
      #expect(status.forward == question.forward, "\(question)")
      #expect(status.isHit == (question.forward == nil), "\(question)")
    }
    let error = await #expect(throws: HTTPCacheError.self) { try await inspector.decision(onURL: "no URL") }
    #expect(error?.code == .invalidURL)
  }

  @Test func `responses of other users do not count`() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.identity = { Array(($0.headerFields[.authorization] ?? "").utf8) }
    let test = try await CacheUnderTest(configuration)
    _ = try await test.get("/fresh", [.authorization: "a"], from: origin)
    let inspector = try HTTPCacheInspector(test.store, configuration: test.cache.configuration)
    try await waitUntil { try await inspector.responses(to: "https://example.com/fresh").count == 1 }
    let own = try await inspector.decision(on: request("/fresh", [.authorization: "a"]))
    #expect(own.status.isHit && own.candidateCount == 1)
    let other = try await inspector.decision(on: request("/fresh", [.authorization: "b"]))
    #expect(!other.status.isHit && other.answer == nil && other.candidateCount == 0)
  }

  @Test func `a response to a request without a user counts for users only if it is public`() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.identity = { Array(($0.headerFields[.authorization] ?? "").utf8) }
    let test = try await CacheUnderTest(configuration)
    _ = try await test.get("/fresh", from: origin)
    let inspector = try HTTPCacheInspector(test.store, configuration: test.cache.configuration)
    try await waitUntil { try await inspector.responses(to: "https://example.com/fresh").count == 1 }
    #expect(try await inspector.decision(on: request("/fresh")).status.isHit)
    let user = try await inspector.decision(on: request("/fresh", [.authorization: "a"]))
    #expect(!user.status.isHit && user.candidateCount == 0)
  }
}
#endif
