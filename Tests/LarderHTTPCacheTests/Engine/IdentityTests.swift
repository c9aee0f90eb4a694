#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite struct IdentityTests {
  private static func origin(_ directives: String) -> Origin {
    Origin { request, _ in
      let user = request.headerFields[.authorization] ?? "nobody"
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: directives]), body: Array(user.utf8))
    }
  }

  private static var configuration: HTTPCacheConfiguration {
    var configuration = HTTPCacheConfiguration.private
    configuration.identity = { request in Array((request.headerFields[.authorization] ?? "").utf8) }
    return configuration
  }

  @Test func `users share only public responses`() async throws {
    let test = try await CacheUnderTest(Self.configuration)
    for (directives, count) in [("max-age=60", 3), ("max-age=60, public", 1)] {
      let origin = Self.origin(directives)
      for _ in 1...2 {
        for fields: HTTPFields in [[.authorization: "a"], [.authorization: "b"], [:]] {
          let body = try await test.get("/\(count)", fields, from: origin).body
          #expect(body == (count == 1 ? "a" : fields[.authorization] ?? "nobody"))
        }
      }
      #expect(origin.count == count)
    }
  }

  @Test func `users do not wait for each other`() async throws {
    let test = try await CacheUnderTest(Self.configuration)
    let gate = Gate()
    let origin = Origin { request, _ in
      try await gate.wait()
      return HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]), body: Array((request.headerFields[.authorization] ?? "").utf8))
    }
    let users = ["a", "b"].map { user in
      Task { try await test.get("/", [.authorization: user], from: origin).body }
    }
    try await waitUntil { origin.count == 2 }
    gate.open()
    #expect(try await users[0].value == "a")
    #expect(try await users[1].value == "b")
  }

  @Test func `no two pairs of partition and identity are the same`() {
    let texts: [[UInt8]] = [[], [0], [0xFF], [1], [0xFF, 0], [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 1]]
    var seen: Set<[UInt8]> = []
    for partition in texts {
      for identity in texts {
        let scope = CacheScope(partition: partition, identity: identity)
        #expect(seen.insert(scope.own).inserted)
        #expect(scope.hasIdentity == !identity.isEmpty)
        #expect(scope.common == CacheScope(partition: partition).own)
      }
    }
    #expect(CacheScope(partition: [1, 2]).own == [1, 2])
  }

  @Test func `a response that the client has changed is not stored`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin { _, _ in
      var response = HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: [1])
      response.isStorable = false
      return response
    }
    for _ in 1...2 { #expect(try await test.get(from: origin).status.detail == "not-stored-client") }
    #expect(origin.count == 2)
  }

  @Test func `a status is read from its field`() {
    var status = CacheStatus(isHit: true)
    status.timeToLive = -7
    status.isStale = true
    var validated = CacheStatus(forward: .stale)
    validated.forwardStatus = 304
    validated.timeToLive = 60
    validated.isValidated = true
    var shared = CacheStatus(forward: .uriMiss)
    shared.isCollapsed = true
    shared.isStored = true
    shared.detail = "not-stored-vary"
    for status in [status, validated, shared, CacheStatus()] {
      let value = status.fieldValue(name: "Larder")
      #expect(CacheStatus(fieldValue: "Other; fwd=bypass, " + value) == status)
    }
    for text in ["", "a b", "(", "x;hit=", "\u{FFFD}"] { #expect(CacheStatus(fieldValue: text) == nil) }
  }
}
#endif
