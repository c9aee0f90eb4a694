import AsyncHTTPClient
import HTTPTestSupport
import LarderHTTPCache
import LarderHTTPClient
import LarderTesting
import NIOCore
import NIOHTTP1
import Testing

@Suite("Users of a private cache", .timeLimit(.minutes(5)))
struct UserTests {
  private static let (alice, bob) = ([("Authorization", "Bearer alice")], [("Authorization", "Bearer bob")])

  /// Runs a closure in front of an origin that answers each user with the credentials.
  private func run(
    mode: HTTPCacheMode = .private, _ directives: String, _ body: (Setting) async throws -> Void
  ) async throws {
    try await Setting.run(mode: mode) { request, wire in
      let user = request["Authorization"].first ?? "nobody"
      try await wire.send(response("Cache-Control: \(directives)", "ETag: \"1\"", body: user))
      return .keep
    } _: { setting async throws in
      try await body(setting)
    }
  }

  @Test("The response to a request with credentials is reused only for the same credentials")
  func apart() async throws {
    try await run("max-age=60") { setting async throws in
      for isHit in [false, true] {
        for (fields, user) in [(Self.alice, "Bearer alice"), (Self.bob, "Bearer bob"), ([], "nobody")] {
          let received = try await setting.send(setting.request("/", fields: fields))
          #expect(received.body == user && received.isHit == isHit)
        }
      }
      #expect(setting.origin.requests.count == 3)
      // An unsafe request of one user invalidates the responses of all.
      _ = try await setting.send(setting.request("/", .post, fields: Self.alice))
      #expect(try await !setting.send(setting.request("/", fields: Self.bob)).isHit)
    }
  }

  @Test("A public response is for all, with and without credentials", arguments: [true, false])
  func shared(storesForUser: Bool) async throws {
    try await run("public, max-age=60") { setting async throws in
      let first = try await setting.send(setting.request("/", fields: storesForUser ? Self.alice : []))
      for fields in [Self.alice, Self.bob, []] {
        let received = try await setting.send(setting.request("/", fields: fields))
        #expect(received.body == first.body && received.isHit)
      }
      #expect(setting.origin.requests.count == 1)
    }
  }

  @Test("A public response that is no longer public leaves the cache of the others")
  func retraction() async throws {
    try await Setting.run { request, wire in
      try await wire.send(
        request["If-None-Match"].isEmpty
          ? response("Cache-Control: public, max-age=60", "ETag: \"1\"")
          : "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nCache-Control: private, max-age=60\r\n\r\n")
      return .keep
    } _: { setting async throws in
      #expect(try await setting.send(setting.request("/", fields: Self.alice)).body == "text")
      #expect(try await setting.send(setting.request("/")).isHit)
      setting.clock.advance(by: .seconds(100))
      let validated = try await setting.send(setting.request("/", fields: Self.alice))
      #expect(validated.body == "text" && validated.response.cacheStatus?.isValidated == true)
      #expect(try await !setting.send(setting.request("/")).isHit)
    }
  }

  @Test("Clients share the responses of a user if they have the same key")
  func keys() async throws {
    try await run("max-age=60") { setting async throws in
      let clients = [1, 1, 2].map { byte in
        CachedHTTPClient(cache: setting.cache, credentialsKey: [UInt8](repeating: UInt8(byte as Int), count: 32))
      }
      let hits = try await clients.asyncMap { client in
        try await Setting.with(client) {
          try await setting.send(setting.request("/", fields: Self.alice), by: $0).isHit
        }
      }
      #expect(hits == [false, true, false])
      #expect(try await !setting.send(setting.request("/", fields: Self.alice)).isHit)
    }
  }

  @Test("A partition separates the responses of users without credentials, also after a redirect")
  func partitions() async throws {
    try await run("public, max-age=60") { setting async throws in
      for isHit in [false, true] {
        for user: UInt8 in [1, 2] {
          let response = try await setting.http.execute(
            setting.request("/"), timeout: .seconds(10), partition: [user])
          _ = try await response.body.collect(upTo: 100)
          #expect(response.cacheStatus?.isHit == isHit)
        }
      }
    }
  }

  @Test func `A shared cache does not store for one user`() async throws {
    try await run(mode: .shared, "max-age=60") { setting async throws in
      for _ in 1...2 { #expect(try await !setting.send(setting.request("/", fields: Self.alice)).isHit) }
    }
    try await run(mode: .shared, "max-age=60, public") { setting async throws in
      _ = try await setting.send(setting.request("/", fields: Self.alice))
      #expect(try await setting.send(setting.request("/", fields: Self.bob)).isHit)
    }
  }
}

extension Array {
  fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async throws -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
