#if HTTPCache
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite struct HTTPCacheTests {
  @Test func `a fresh response is reused`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60", .contentLength: "4"]))
    let first = try await test.get(from: origin)
    #expect(first.body == "body")
    #expect(first.status.forward == .uriMiss)
    #expect(first.status.isStored)
    test.clock.advance(by: .seconds(59))
    let second = try await test.get(from: origin)
    #expect(second.body == "body")
    #expect(second.status.isHit)
    #expect(second.head.headerFields[.age] == "59")
    #expect(origin.count == 1)
    test.clock.advance(by: .seconds(2))
    _ = try await test.get(from: origin)
    #expect(origin.count == 2)
    let statistics = test.cache.statistics()
    #expect(statistics.requestCount == 3)
    #expect(statistics.hitCount == 1)
    #expect(statistics.storedCount >= 1)
    #expect(statistics.storedBytesRead == 4)
    #expect(statistics.originBytesRead == 8)
    #expect(statistics.storeFailureCount == 0)
  }

  @Test func `a stale response is validated`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin { request, number in
      let fields: HTTPFields = [.cacheControl: "max-age=10", .eTag: "\"a\""]
      if request.headerFields[.ifNoneMatch] == "\"a\"" {
        return HTTPForwardedResponse(head: head(.notModified, fields))
      }
      return HTTPForwardedResponse(head: head(.ok, fields), body: Array("one".utf8))
    }
    _ = try await test.get(from: origin)
    test.clock.advance(by: .seconds(20))
    let second = try await test.get(from: origin)
    #expect(second.head.status == .ok)
    #expect(second.body == "one")
    #expect(second.status.isValidated)
    #expect(origin.count == 2)
    test.clock.advance(by: .seconds(5))
    let third = try await test.get(from: origin)
    #expect(third.status.isHit, "the 304 has freshened it")
    #expect(origin.count == 2)
    #expect(test.cache.statistics().validationCount == 1)
  }

  @Test func `a body that a closure writes is stored if the closure ends without an error`() async throws {
    struct Cut: Error {}
    let test = try await CacheUnderTest()
    let origin = Origin { _, number in
      HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"])) { write in
        for part in ["one", "", "two"] { try await write(Array(part.utf8)) }
        if number == 1 { throw Cut() }
      }
    }
    await #expect(throws: Cut.self) { try await test.get(from: origin) }
    for _ in 1...2 { #expect(try await test.get(from: origin).body == "onetwo") }
    #expect(origin.count == 2)
  }

  @Test func `a large body is streamed and stored`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin { _, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]),
        body: ChunkedBody { $0 < 40 ? Array(repeating: UInt8($0), count: 100_000) : nil })
    }
    for _ in 0..<2 {
      let response = try await test.cache.response(to: request()) { try await origin($0) }
      let bytes = try await response.body.bytes(upTo: 10_000_000)
      #expect(bytes.count == 4_000_000)
      #expect(bytes == (0..<40).flatMap { Array(repeating: UInt8($0), count: 100_000) })
    }
    #expect(origin.count == 1)
  }

  @Test func `a body beyond the share of unfinished ones is answered and not stored`() async throws {
    var configuration = HTTPCacheConfiguration.private
    (configuration.capacity, configuration.largestBody) = (20_000_000, 2_000_000)
    let test = try await CacheUnderTest(configuration)
    let gate = Gate()
    let body = ChunkedBody { index in
      if index == 15 { try await gate.wait() }
      return index < 19 ? Array(repeating: UInt8(index), count: 100_000) : nil
    }
    let origin = Origin { _, _ in
      HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60", .contentLength: "1900000"]), body: body)
    }
    let requests = (0..<3).map { number in
      Task { try await test.get("/\(number)", from: origin).body.utf8.count }
    }
    try await waitUntil { test.cache.statistics().notStoredCounts["noRoom"] == 1 }
    gate.open()
    for request in requests { #expect(try await request.value == 1_900_000) }
    try await waitUntil { test.cache.statistics().storedCount == 2 }
    #expect(test.cache.statistics().evictionCount == 0)
  }

  @Test func `a range is answered from a complete response`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]), "0123456789")
    _ = try await test.get(from: origin)
    let part = try await test.get("/", [.range: "bytes=2-4"], from: origin)
    #expect(part.head.status == .partialContent)
    #expect(part.body == "234")
    let none = try await test.get("/", [.range: "bytes=20-"], from: origin)
    #expect(none.head.status == .rangeNotSatisfiable)
    #expect(none.body.isEmpty)
    #expect(origin.count == 1)
  }

  @Test func `a part is completed by the missing bytes`() async throws {
    let test = try await CacheUnderTest()
    let body = Array("0123456789".utf8)
    let origin = Origin { request, _ in
      let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
      switch request.headerFields[.range] {
      case "bytes=0-3":
        let range: HTTPFields = [.contentRange: "bytes 0-3/10", .contentLength: "4"]
        return HTTPForwardedResponse(head: head(.partialContent, fields + range), body: Array(body[..<4]))
      case "bytes=4-":
        #expect(request.headerFields[.ifRange] == "\"a\"")
        let range: HTTPFields = [.contentRange: "bytes 4-9/10", .contentLength: "6"]
        return HTTPForwardedResponse(head: head(.partialContent, fields + range), body: Array(body[4...]))
      default:
        Issue.record("the whole body must not be asked for")
        return HTTPForwardedResponse(head: head(.ok, fields), body: body)
      }
    }
    #expect(try await test.get("/", [.range: "bytes=0-3"], from: origin).body == "0123")
    let whole = try await test.get(from: origin)
    #expect(whole.head.status == .ok)
    #expect(whole.body == "0123456789")
    #expect(whole.status.forward == .partial)
    let again = try await test.get(from: origin)
    #expect(again.status.isHit)
    #expect(again.body == "0123456789")
    #expect(origin.count == 2)
  }

  @Test func `an unsafe request invalidates`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]))
    _ = try await test.get(from: origin)
    _ = try await test.get("/", method: .post, from: origin)
    #expect(!(try await test.get(from: origin).status.isHit))
    #expect(try await test.get(from: origin).status.isHit)
    #expect(origin.count == 3)
  }

  @Test func `invalidations by hand`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]))
    let paths = ["/", "/users/1", "/users/2", "/other"]
    func hits() async throws -> [Bool] {
      var hits: [Bool] = []
      for path in paths { hits.append(try await test.get(path, from: origin).status.isHit) }
      return hits
    }
    #expect(try await hits() == [false, false, false, false])
    try await test.cache.invalidate("HTTPS://EXAMPLE.com:443/other#fragment")
    #expect(try await hits() == [true, true, true, false])
    try await test.cache.invalidate(prefix: "https://example.com/users/")
    #expect(try await hits() == [true, false, false, true])
    try await test.cache.removeAll()
    #expect(try await hits() == [false, false, false, false])
    #expect(test.cache.statistics().invalidationCount == 3)
    await #expect(throws: HTTPCacheError.self) { try await test.cache.invalidate("no URL") }
  }

  @Test func `a response whose request is older than an invalidation is not stored`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin { _, number in
      if number == 1 { try await test.cache.invalidate("https://example.com/") }
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("\(number)".utf8))
    }
    #expect(try await test.get(from: origin).body == "1")
    #expect(try await test.get(from: origin).body == "2")
    #expect(try await test.get(from: origin).body == "2")
  }

  @Test func `a stale response is reused while it is refreshed`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, number in
      if number == 2 { try await gate.wait() }
      return HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=10, stale-while-revalidate=100"]), body: Array("\(number)".utf8))
    }
    _ = try await test.get(from: origin)
    test.clock.advance(by: .seconds(20))
    for _ in 0..<10 {
      let stale = try await test.get(from: origin)
      #expect(stale.body == "1")
      #expect(stale.status.isStale)
    }
    try await waitUntil { origin.count >= 2 }
    gate.open()
    try await waitUntil { test.cache.statistics().storedCount >= 2 }
    #expect(try await test.get(from: origin).body == "2")
    #expect(origin.count == 2, "the refresh runs once")
    #expect(test.cache.statistics().refreshCount == 1)
  }

  @Test func `a stale response is reused if the origin fails`() async throws {
    struct Unreachable: Error {}
    let test = try await CacheUnderTest()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=10, stale-if-error=100"]))
    _ = try await test.get(from: origin)
    _ = try await test.get("/strict", from: Origin(head(.ok, [.cacheControl: "max-age=10, must-revalidate"])))
    test.clock.advance(by: .seconds(20))
    origin.set { _, _ in HTTPForwardedResponse(head: head(.serviceUnavailable)) }
    #expect(try await test.get(from: origin).body == "body")
    origin.set { _, _ in throw Unreachable() }
    #expect(try await test.get(from: origin).body == "body")
    #expect(try await test.get("/strict", from: origin).head.status == .gatewayTimeout)
    await #expect(throws: Unreachable.self) { try await test.get("/unknown", from: origin) }
    #expect(test.cache.statistics().failureCount == 1)
    #expect(test.cache.statistics().refusalCount == 1)
  }

  @Test func policies() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=10", .eTag: "\"a\""]))
    #expect(try await test.get(policy: .cacheOnly, from: origin).head.status == .gatewayTimeout)
    #expect(origin.count == 0)
    _ = try await test.get(policy: .preferCache, from: origin)
    #expect(origin.count == 1)
    test.clock.advance(by: .seconds(20))
    #expect(try await test.get(policy: .preferCache, from: origin).status.isHit)
    #expect(try await test.get(policy: .cacheOnly, from: origin).status.isHit)
    #expect(origin.count == 1)
    _ = try await test.get(policy: .revalidate, from: origin)
    #expect(origin.received.last?.headerFields[.ifNoneMatch] == "\"a\"")
    _ = try await test.get(policy: .reload, from: origin)
    #expect(origin.received.last?.headerFields[.ifNoneMatch] == nil)
    _ = try await test.get(policy: .reloadEndToEnd, from: origin)
    #expect(origin.received.last?.headerFields[.cacheControl] == "no-cache")
    #expect(origin.count == 4)
    #expect(try await test.get(from: origin).status.isHit)
  }

  @Test func `the hook adds data or refuses`() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.willStore = { request, response in
      switch request.path {
      case "/refused": .refuse
      case "/large": .store(userData: Array(repeating: 0, count: 65_537))
      default: .store(userData: [1, 2])
      }
    }
    let test = try await CacheUnderTest(configuration)
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]))
    _ = try await test.get(from: origin)
    let hit = try await test.cache.response(to: request()) { try await origin($0) }
    #expect(hit.userData == [1, 2])
    #expect(hit.cacheStatus.isHit)
    for path in ["/refused", "/large"] {
      for _ in 0..<2 {
        let response = try await test.get(path, from: origin)
        #expect(!response.status.isHit)
        #expect(!response.status.isStored)
        #expect(response.head.headerFields[HTTPField.Name("Cache-Status")!]?.contains("not-stored") == true)
      }
    }
    _ = try await test.get("/private", from: Origin(head(.ok, [.cacheControl: "no-store"])))
    #expect(test.cache.statistics().storedCount == 1)
    #expect(test.cache.statistics().notStoredCounts == ["refused": 2, "userData": 2, "noStore": 1])
  }

  @Test(arguments: [("length", 3), ("length", 5), ("cut", 4)])
  func `a body that is not stored is counted with its reason`(reason: String, length: Int) async throws {
    struct Broken: Error {}
    let test = try await CacheUnderTest()
    let origin = Origin { _, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60", .contentLength: "4"]),
        body: ChunkedBody { index in
          if index > 0, reason == "cut" { throw Broken() }
          return index > 0 ? nil : [UInt8](repeating: 1, count: reason == "cut" ? 2 : length)
        })
    }
    for _ in 0..<2 {
      let response = try await test.cache.response(to: request()) { try await origin($0) }
      if length == 5 {
        #expect(try await response.body.bytes(upTo: 10).count == 5)
      } else {
        await #expect(throws: (any Error).self) { try await response.body.bytes(upTo: 10) }
      }
    }
    #expect(origin.count == 2 && test.cache.statistics().storedCount == 0)
    #expect(test.cache.statistics().notStoredCounts == [reason: 2])
  }

  @Test func `partitions are apart`() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.partition = { Array(($0.headerFields[.cookie] ?? "").utf8) }
    let test = try await CacheUnderTest(configuration)
    let origin = Origin { request, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]), body: Array((request.headerFields[.cookie] ?? "").utf8))
    }
    for _ in 0..<2 {
      for user in ["a=1", "a=2"] { #expect(try await test.get("/", [.cookie: user], from: origin).body == user) }
    }
    #expect(origin.count == 2)
    let response = try await test.cache.response(to: request("/", [.cookie: "a=1"]), partition: [7]) {
      try await origin($0)
    }
    #expect(!response.cacheStatus.isHit)
  }

  @Test func `a URL with credentials is refused`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin(head())
    let request = HTTPRequest(method: .get, scheme: "https", authority: "user:secret@example.com", path: "/")
    let error = await #expect(throws: HTTPCacheError.self) {
      _ = try await test.cache.response(to: request) { try await origin($0) }
    }
    #expect(error?.code == .invalidURL)
    #expect(error.map { "\($0)".contains("secret") } == false)
    #expect(origin.count == 0)
  }

  @Test func `configurations are checked`() async throws {
    func expectInvalid(_ change: (inout HTTPCacheConfiguration) -> Void) async {
      var configuration = HTTPCacheConfiguration.private
      change(&configuration)
      let changed = configuration
      let error = await #expect(throws: HTTPCacheError.self) {
        _ = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: changed)
      }
      #expect(error?.code == .invalidConfiguration)
    }
    await expectInvalid { $0.capacity = 0 }
    await expectInvalid { $0.largestBody = -1 }
    await expectInvalid { $0.heuristicFraction = 1.5 }
    await expectInvalid { $0.heuristicFraction = .nan }
    await expectInvalid { $0.name = "two words" }
    await expectInvalid { $0.name = "^cache" }
    await expectInvalid { $0.storeTimeLimit = .zero }
    await expectInvalid { $0.waitLimit = .seconds(-1) }
    await expectInvalid { $0.originTimeLimit = .zero }
  }

  @Test func `run sweeps until it is cancelled`() async throws {
    let test = try await CacheUnderTest()
    let running = Task { await test.cache.run() }
    try await test.clock.waitForSleepers(1)
    test.store.schedule(.error(.ioFailed))
    try await advance(test.clock, by: .seconds(60)) { test.cache.statistics().storeFailureCount == 1 }
    let before = test.store.operationCount
    try await advance(test.clock, by: .seconds(60)) { test.store.operationCount > before }
    running.cancel()
    await running.value
  }
}

extension HTTPFields {
  static func + (left: HTTPFields, right: HTTPFields) -> HTTPFields {
    var result = left
    result.append(contentsOf: right)
    return result
  }
}
#endif
