#if HTTPCache
import Testing

@testable import HTTPCachingRules

struct CacheControlTests {
  private func parse(_ lines: String...) -> CacheControl { CacheControl(lines.map { Array($0.utf8) }) }

  @Test("Directives have any case, and unknown ones are ignored")
  func directives() {
    let control = parse("foo, MaX-aGe=60 ,, no-STORE", "Public, bar=\"a, no-cache\"")
    #expect(control.maxAge == 60)
    #expect(control.noStore)
    #expect(control.isPublic)
    #expect(!control.noCache)
  }

  @Test(
    "The seconds of max-age",
    arguments: [
      ("max-age=3600", 3600), ("max-age=\"3600\"", 3600), ("max-age=003600", 3600),
      ("max-age=99999999999", 99_999_999_999),
      ("max-age=99999999999999999999999999", 1 << 53), ("max-age=-1", 0), ("max-age='3600'", 0), ("max-age=3600.5", 0),
      ("max-age=3600a", 0), ("max-age", 0), ("max-age=", 0), ("max-age = 3600", 0), ("max-age =3600", 0),
      ("max-age=1 2", 0), ("max-age=1\"2\"", 0), ("max-age=\"3600", 0), ("max-age=60, max-age=60", 60),
      ("max-age=60, max-age=30", 0),
    ])
  func maxAge(text: String, seconds: Int64) {
    #expect(parse(text).maxAge == seconds)
  }

  @Test("A directive in a quoted string is no directive")
  func quoted() {
    #expect(parse("extension=\"max-age=3600\", max-age=1").maxAge == 1)
    #expect(parse("max-age=1, extension=\"max-age=3600\"").maxAge == 1)
    #expect(parse("a=\"\\\", no-store\"").noStore == false)
    #expect(parse("a=\"unterminated, no-cache").noCache == false)
  }

  @Test("A directive that restricts counts even if it is malformed; one that permits doesn't")
  func malformed() {
    #expect(parse("no-store=foo").noStore)
    #expect(parse("no-store foo").noStore)
    #expect(parse("must-revalidate=1").mustRevalidate)
    for text in ["public=1", "public=", "public=,", "public=\"", "public;"] {
      #expect(!parse(text).isPublic, "\(text)")
    }
    #expect(!parse("immutable foo").isImmutable)
    #expect(parse("stale-while-revalidate=x").staleWhileRevalidate == 0)
  }

  @Test func `no-cache and private have a list of fields or stand alone`() {
    let control = parse("no-cache=\"Set-Cookie, A\", private=\"B\"")
    #expect(control.noCacheFields == ["set-cookie", "a"])
    #expect(control.privateFields == ["b"])
    #expect(!control.noCache)
    #expect(!control.isPrivate)
    for text in ["no-cache", "no-cache=\"\"", "no-cache=\"a b\"", "no-cache=a", "no-cache=\"a\", no-cache"] {
      #expect(parse(text).noCache, "\(text)")
    }
  }

  @Test("Directives of requests")
  func requests() {
    #expect(parse("max-stale").maxStale == .max)
    #expect(parse("max-stale=5, max-stale").maxStale == 5)
    #expect(parse("max-stale=x").maxStale == nil)
    #expect(parse("min-fresh=5, min-fresh=7").minFresh == 7)
    #expect(parse("only-if-cached").onlyIfCached)
  }
}
#endif
