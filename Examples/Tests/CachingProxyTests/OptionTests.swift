import ArgumentParser
import HTTPTestSupport
import LarderHTTPCache
import Testing

@testable import CachingProxy

@Suite("Options", .timeLimit(.minutes(5)))
struct OptionTests {
  private func command(_ options: String...) throws -> CachingProxyCommand {
    try CachingProxyCommand.parse(["--origin", "http://127.0.0.1:8000"] + options)
  }

  /// The directives of responses with a cookie, by their paths.
  private static let directives = ["/validated": "no-cache", "/fresh": "max-age=60", "/public": "public, max-age=60"]

  @Test(
    arguments: [
      (nil, ["/public"]), ("never", []), ("ifPublic", ["/public"]), ("ifFresh", ["/fresh", "/public"]),
      ("always", ["/fresh", "/public", "/validated"]),
    ] as [(String?, [String])])
  func `--set-cookie says which responses with cookies are stored`(value: String?, stored: [String]) async throws {
    let options = try value.map { try command("--set-cookie", $0) } ?? command()
    let origin = try await TestOrigin { request, wire in
      let isValidation = !request["If-None-Match"].isEmpty
      try await wire.send(
        response(
          status: isValidation ? "304 Not Modified" : "200 OK", "Set-Cookie: a=b", "ETag: \"1\"",
          "Cache-Control: \(Self.directives[request.target] ?? "no-store")", body: isValidation ? "" : "text"))
      return .keep
    }
    try await TestProxy.run(originPort: origin.port, configuration: options.cacheConfiguration()) {
      proxy async throws in
      for path in Self.directives.keys.sorted() {
        let first = try await proxy.exchange("GET \(path)")
        #expect(first["Set-Cookie"] == ["a=b"] && first.body == "text")
        let second = try await proxy.exchange("GET \(path)")
        #expect(second["Set-Cookie"] == ["a=b"] && second.body == "text")
        let status = CacheStatus(fieldValue: second["Cache-Status"].last ?? "")
        #expect((status?.isHit == true || status?.isValidated == true) == stored.contains(path), "\(path)")
      }
    }
    await origin.stop()
  }

  @Test("--set-cookie has a default for each kind of cache, and refuses other values")
  func defaults() throws {
    #expect(try command().cacheConfiguration().setCookieStoring == nil)
    #expect(try command("--mode", "private", "--set-cookie", "never").cacheConfiguration().setCookieStoring == .never)
    for value in ["", "sometimes", "ifpublic"] {
      let error = #expect(throws: (any Error).self) { try command("--set-cookie", value) }
      let message = error.map { CachingProxyCommand.message(for: $0) }
      #expect(message == "--set-cookie must be never, ifPublic, ifFresh or always")
    }
  }
}
