#if HTTPCache && Metrics
import CoreMetrics
import HTTPTypes
import InMemoryTracing
import Larder
import LarderTesting
import MetricsTestKit
import TestSupport
import Testing
import Tracing

@testable import LarderHTTPCache

/// The metrics and the spans of a cache.
@Suite struct HTTPCacheMeteringTests {
  private let metrics = TestMetrics()
  private let tracer = InMemoryTracer()

  private func cache(
    _ change: (inout HTTPCacheConfiguration) -> Void = { _ in }
  ) async throws -> CacheUnderTest {
    var configuration = HTTPCacheConfiguration.private
    configuration.metering = HTTPCacheMetering(name: "api", metrics: metrics, tracer: tracer)
    change(&configuration)
    return try await CacheUnderTest(configuration)
  }

  /// The values of a label, by the dimensions besides the cache.
  private func counts(_ label: String) -> [String: Int64] {
    var counts: [String: Int64] = [:]
    for counter in metrics.counters where counter.label == label {
      #expect(counter.dimensions.first?.0 == "cache" && counter.dimensions.first?.1 == "api")
      counts[counter.dimensions.dropFirst().map { $0.1 }.joined(separator: " "), default: 0] += counter.totalValue
    }
    return counts
  }

  /// The durations of a timer, in milliseconds, by the dimensions besides the cache.
  private func durations(_ operation: String) -> [String: [Int64]] {
    var durations: [String: [Int64]] = [:]
    for timer in metrics.timers where timer.label == "larder_http_\(operation)_duration" {
      let key = timer.dimensions.dropFirst().map { $0.1 }.joined(separator: " ")
      durations[key, default: []] += timer.values.map { $0 / 1_000_000 }
    }
    return durations
  }

  @Test func `requests and fetches are timed by outcome`() async throws {
    let test = try await cache()
    let clock = test.clock
    let origin = Origin { request, _ in
      clock.advance(by: .milliseconds(30))
      let fields: HTTPFields = [.cacheControl: "max-age=10, stale-if-error=600", .eTag: "\"a\""]
      let status: HTTPResponse.Status = request.headerFields.contains(.ifNoneMatch) ? .notModified : .ok
      return HTTPForwardedResponse(head: head(status, fields), body: status == .ok ? Array("body".utf8) : [])
    }
    _ = try await test.get(from: origin)
    _ = try await test.get(from: origin)
    clock.advance(by: .seconds(20))
    _ = try await test.get(from: origin)
    struct Unreachable: Error {}
    origin.set { _, _ in throw Unreachable() }
    clock.advance(by: .seconds(20))
    _ = try await test.get(from: origin)
    await #expect(throws: Unreachable.self) { try await test.get("/other", from: origin) }
    _ = try await test.get("/none", policy: .cacheOnly, from: origin)
    #expect(
      durations("request") == [
        "forwarded uri-miss": [30], "hit none": [0], "validated stale": [30], "stale stale": [0], "failed none": [0],
        "refused none": [0],
      ])
    #expect(durations("fetch") == ["2xx": [30], "3xx": [30], "failed": [0, 0]])
    #expect(counts("larder_http_bytes") == ["origin": 4, "store": 12])
    try await waitUntil { counts("larder_http_events")["stored"] == 1 }
  }

  @Test func `what is not stored is counted by reason`() async throws {
    let test = try await cache { $0.largestBody = 10 }
    let origin = Origin { request, _ in
      let control = request.path == "/large" ? "max-age=60" : "no-store"
      return HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: control, .contentLength: "11"]), body: Array("body body b".utf8))
    }
    for path in ["/large", "/a", "/b"] { _ = try await test.get(path, from: origin) }
    #expect(counts("larder_http_not_stored") == ["tooLarge": 1, "noStore": 2])
    try await test.cache.invalidate("https://example.com/a")
    #expect(counts("larder_http_events") == ["invalidated": 1])
    // The counters are those of the statistics.
    let statistics = test.cache.statistics()
    #expect(statistics.notStoredCounts == ["tooLarge": 1, "noStore": 2])
    #expect(counts("larder_http_bytes") == ["origin": Int64(statistics.originBytesRead)])
  }

  @Test func `each caller has a span and each fetch has one`() async throws {
    let test = try await cache()
    let origin = Origin { [tracer] _, _ in
      // The client's own span.
      tracer.startSpan("send", context: InstrumentationContext.current ?? .topLevel).end()
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("body".utf8))
    }
    let caller = tracer.startSpan("caller", context: .topLevel)
    try await InstrumentationContext.$current.withValue(caller.context) {
      _ = try await test.get("/secret?token=1", from: origin)
      _ = try await test.get("/secret?token=1", from: origin)
    }
    caller.end()
    let spans = tracer.finishedSpans
    let requests = spans.filter { $0.operationName == "larder.http.request" }
    let fetches = spans.filter { $0.operationName == "larder.http.fetch" }
    #expect(requests.count == 2 && fetches.count == 1)
    #expect(requests.allSatisfy { $0.parentSpanID == caller.spanID && $0.traceID == caller.traceID })
    let outcomes = requests.map { $0.attributes.get("larder.outcome") }
    #expect(outcomes == [.string("forwarded"), .string("hit")])
    #expect(fetches.first?.parentSpanID == requests.first?.spanID)
    #expect(fetches.first?.attributes.get("larder.outcome") == .string("2xx"))
    #expect(spans.first { $0.operationName == "send" }?.parentSpanID == fetches.first?.spanID)
    // Nothing of the request is in a span.
    #expect(!spans.contains { "\($0.operationName) \($0.attributes)".contains("secret") })
  }

  @Test func `an error is in no span`() async throws {
    let test = try await cache()
    struct Secret: Error {}
    let origin = Origin { _, _ in throw Secret() }
    await #expect(throws: Secret.self) { try await test.get(from: origin) }
    await #expect(throws: HTTPCacheError.self) { try await test.get("/a#b", from: origin) }
    let spans = tracer.finishedSpans
    #expect(spans.count == 3)
    #expect(spans.allSatisfy { $0.status?.code == .error && $0.errors.isEmpty })
  }

  @Test func `without a backend nothing is measured`() async throws {
    let metering = HTTPCacheMetering(name: "api", metrics: NOOPMetricsHandler.instance, tracer: NoOpTracer())
    #expect(HTTPCacheInstruments(metering, clock: ManualClock()) == nil)
    let test = try await cache { $0.metering = metering }
    _ = try await test.get(from: Origin(head(.ok)))
    #expect(metrics.timers.isEmpty && tracer.finishedSpans.isEmpty)
  }
}
#endif
