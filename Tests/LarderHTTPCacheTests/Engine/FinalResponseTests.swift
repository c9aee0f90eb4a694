#if HTTPCache
import HTTPTypes
import Larder
import LarderTesting
import Testing

@testable import LarderHTTPCache

/// Responses whose status, length or cookies need care.
@Suite struct FinalResponseTests {
  @Test func `a response without a body is stored whatever its content length`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.noContent, [.cacheControl: "max-age=60", .contentLength: "5"]), "")
    let first = try await test.get(from: origin)
    #expect(first.status.isStored)
    #expect(first.head.headerFields[.contentLength] == nil)
    let second = try await test.get(from: origin)
    #expect(second.status.isHit)
    #expect(second.head.status == .noContent)
    #expect(second.head.headerFields[.contentLength] == nil)
    #expect(second.body.isEmpty)
    #expect(origin.count == 1)
    #expect(test.cache.statistics().notStoredCounts == [:])
  }

  @Test(arguments: [100, 101, 103])
  func `an interim response is an error`(status: Int) async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.init(code: status), [.cacheControl: "max-age=60"]))
    for _ in 0..<2 {
      let error = await #expect(throws: HTTPCacheError.self) { _ = try await test.get(from: origin) }
      #expect(error?.code == .interimResponse)
    }
    #expect(test.cache.statistics().failureCount == 2)
    #expect(test.cache.statistics().storedCount == 0)
  }

  @Test func `a shared cache stores a cookie only for all`() async throws {
    for (configuration, storing, control, isStored) in [
      (.shared, nil, "max-age=60", false), (.shared, nil, "public, max-age=60", true),
      (.shared, nil, "s-maxage=60", true), (.shared, .ifFresh, "max-age=60", true), (.private, nil, "max-age=60", true),
      (.private, .never, "max-age=60", false),
    ] as [(HTTPCacheConfiguration, SetCookieStoring?, String, Bool)] {
      var configuration = configuration
      configuration.setCookieStoring = storing
      let test = try await CacheUnderTest(configuration)
      let origin = Origin(head(.ok, [.cacheControl: control, .setCookie: "session=1"]))
      let first = try await test.get(from: origin)
      #expect(first.head.headerFields[.setCookie] == "session=1")
      #expect(first.status.detail == (isStored ? nil : "not-stored-setCookie"))
      #expect(try await test.get(from: origin).status.isHit == isStored, "\(control)")
    }
  }
}
#endif
