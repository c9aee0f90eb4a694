#if HTTPCache
import HTTPTypes
import Testing

@testable import HTTPCachingRules

/// RFC 9213 and RFC 9211.
struct TargetedFieldsTests {
  private func parse(_ lines: String...) -> CacheControl? { CacheControl(targeted: lines.map { Array($0.utf8) }) }

  @Test("A targeted field is a dictionary of a structured field")
  func valid() throws {
    let control = try #require(parse("max-age=60, foo;a=1, no-cache=\"a, b\"", "must-revalidate, immutable=?0"))
    #expect(control.maxAge == 60)
    #expect(control.mustRevalidate)
    #expect(!control.isImmutable)
    #expect(control.noCacheFields == ["a", "b"])
    #expect(parse("max-age=1, max-age=2")?.maxAge == 2)
    #expect(parse("foo=(1 2), max-age=1")?.maxAge == 1)
  }

  @Test(
    "An invalid one is ignored as a whole",
    arguments: [
      "", "max-age=60, &&&&", "max-age=\"60\"", "max-age=-1", "max-age=1.5", "max-age", "max-age=(1 2)", "MaX-aGe=60",
      "max-age =60", "max-age= 60", "no-store=1", "private=\"\"", "max-age=60,", "max-age=9999999999999999",
    ])
  func invalid(text: String) {
    #expect(parse(text) == nil)
  }

  @Test("The first valid field of the list decides, and Cache-Control and Expires don't count then")
  func precedence() throws {
    for (fields, isStored, isHit) in [
      ([.targeted: "max-age=60", .cacheControl: "no-store"], true, true),
      ([.targeted: "no-store", .cacheControl: "max-age=60"], false, false),
      ([.targeted: "max-age=0", .expires: dateText(60), .eTag: "\"a\""], true, false),
      ([.targeted: "foo", .cacheControl: "max-age=60", .eTag: "\"a\""], true, false),
      ([.targeted: "max-age=x y", .cacheControl: "max-age=60"], true, true),
      ([.targeted: "private", .cacheControl: "max-age=60"], false, false),
      ([.targeted: "max-age=1", HTTPField.Name.named("Own-Cache-Control"): "max-age=60"], true, true),
    ] as [(HTTPFields, Bool, Bool)] {
      var session = Session { $0.targetedFields = [HTTPField.Name.named("Own-Cache-Control"), .targeted] }
      try session.store(fields)
      #expect(session.stored().isEmpty != isStored)
      #expect(try session.request(at: 5).isHit == isHit, "\(fields)")
    }
    var session = Session()
    try session.store([.targeted: "no-store", .cacheControl: "max-age=60"])
    #expect(try session.request(at: 5).isHit)
  }

  @Test("Cache-Status says what the cache did, after the caches before it")
  func cacheStatus() throws {
    var session = Session { $0.name = "MyCache" }
    let control: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .cacheStatus: "Origin; hit"]
    let miss = try session.store(control)
    #expect(miss.fields[.cacheStatus] == "Origin; hit, MyCache;fwd=uri-miss;fwd-status=200;stored")
    #expect(miss.cache.isStored)
    let hit = try session.request(at: 10)
    #expect(hit.fields[.cacheStatus] == "Origin; hit, MyCache;hit;ttl=50")
    let refused = try session.store([.cacheControl: "no-store"], path: "/a")
    #expect(refused.fields[.cacheStatus] == "MyCache;fwd=uri-miss;fwd-status=200;detail=not-stored-noStore")
    let validated = try session.request(at: 100) { _ in .init(status: 304, fields: [.eTag: "\"a\""]) }
    #expect(validated.fields[.cacheStatus]?.hasSuffix("MyCache;fwd=stale;fwd-status=304;ttl=60") == true)
    #expect(validated.cache.isValidated)
    var silent = Session { $0.name = nil }
    let part = try session.request(.get, "/part") { _ in
      .init(status: 206, fields: [.cacheControl: "max-age=60", .contentRange: "bytes 0-3/10", .eTag: "\"a\""])
    }
    #expect(part.fields[.cacheStatus] == "MyCache;fwd=uri-miss;fwd-status=206;detail=not-stored-part")
    #expect(try silent.store([.cacheControl: "max-age=60"]).fields[.cacheStatus] == nil)
    #expect(try silent.request(at: 1).fields[.cacheStatus] == nil)
  }
}
#endif
