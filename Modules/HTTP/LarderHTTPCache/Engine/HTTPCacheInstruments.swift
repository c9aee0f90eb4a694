#if HTTPCache && Metrics
import CoreMetrics
import HTTPCachingRules
import HTTPTypes
import Larder
import Tracing

/// The instruments and the spans of one cache.
final class HTTPCacheInstruments: Sendable {
  /// A dimension of an instrument.
  private struct Dimension: Hashable, Sendable {
    let name: String
    let value: String

    init(_ name: String, _ value: String) {
      (self.name, self.value) = (name, value)
    }
  }

  /// An instrument, by its label and its dimensions besides the cache.
  private struct Key: Hashable, Sendable {
    let label: String
    let dimensions: [Dimension]
  }

  private struct State {
    var timers: [Key: Timer] = [:]
    var counters: [Key: Counter] = [:]
    /// The counts that the counters have reached.
    var counts = [Int](repeating: 0, count: HTTPCacheInstruments.events.count)
    var notStoredCounts: [String: Int] = [:]
  }

  private let name: String
  private let factory: (any MetricsFactory)?
  private let tracer: (any Tracer)?
  private let time: ElapsedTime
  private let state = Locked(State())

  /// Creates the instruments.
  ///
  /// - Parameters:
  ///   - metering: The settings.
  ///   - clock: The clock that measures durations.
  /// - Returns: `nil` if neither metrics nor spans are reported.
  init?(_ metering: HTTPCacheMetering, clock: any Clock<Duration>) {
    name = metering.name
    factory = metering.metrics is NOOPMetricsHandler ? nil : metering.metrics
    tracer = metering.tracer is NoOpTracer ? nil : metering.tracer
    time = ElapsedTime(by: clock)
    if factory == nil, tracer == nil { return nil }
  }

  // MARK: Requests

  /// Measures the response to a request until its head is returned.
  func measureRequest(_ body: () async throws -> HTTPCacheResponse) async throws -> HTTPCacheResponse {
    try await measure("request", .internal, body) { response in
      let status = response.cacheStatus
      return [Dimension("outcome", status.outcome), Dimension("reason", status.forward?.rawValue ?? "none")]
    } failure: { outcome in
      [Dimension("outcome", outcome), Dimension("reason", "none")]
    }
  }

  /// Returns a closure that measures each forwarded request until the head of its response has arrived.
  func measuring(_ forward: @escaping HTTPCache.Forward) -> HTTPCache.Forward {
    { [self] request in
      try await measure("fetch", .client) {
        try await forward(request)
      } success: { response in
        [Dimension("outcome", "\(response.head.status.code / 100)xx")]
      } failure: { outcome in
        [Dimension("outcome", outcome)]
      }
    }
  }

  private func measure<Result>(
    _ operation: String, _ kind: SpanKind, _ body: () async throws -> Result, success: (Result) -> [Dimension],
    failure: (String) -> [Dimension]
  ) async throws -> Result {
    let start = time.nanoseconds
    let span = tracer?.startSpan(
      "larder.http.\(operation)", context: InstrumentationContext.current ?? .topLevel, ofKind: kind)
    span?.attributes["larder.cache"] = name
    do {
      let result: Result
      if let span {
        result = try await InstrumentationContext.$current.withValue(span.context) { try await body() }
      } else {
        result = try await body()
      }
      end(operation, after: time.nanoseconds - start, span, success(result))
      return result
    } catch {
      let isCancelled = error is CancellationError
      // The error itself is left out because it may contain a URL.
      if !isCancelled { span?.setStatus(SpanStatus(code: .error)) }
      end(operation, after: time.nanoseconds - start, span, failure(isCancelled ? "cancelled" : "failed"))
      throw error
    }
  }

  private func end(_ operation: String, after nanoseconds: Int64, _ span: (any Span)?, _ dimensions: [Dimension]) {
    for dimension in dimensions { span?.attributes["larder.\(dimension.name)"] = dimension.value }
    span?.end()
    guard let factory else { return }
    let key = Key(label: "larder_http_\(operation)_duration", dimensions: dimensions)
    let timer = state.withLock { state in
      if let timer = state.timers[key] { return timer }
      let timer = Timer(label: key.label, dimensions: all(dimensions), factory: factory)
      state.timers[key] = timer
      return timer
    }
    // An injected clock may run backwards.
    timer.recordNanoseconds(max(0, nanoseconds))
  }

  private func all(_ dimensions: [Dimension]) -> [(String, String)] {
    [("cache", name)] + dimensions.map { ($0.name, $0.value) }
  }

  // MARK: Events

  /// The counts of the statistics that counters report, with their labels and dimensions.
  private static let events: [(key: Key, count: @Sendable (HTTPCacheStatistics) -> Int)] = [
    event("stored") { $0.storedCount }, event("refreshed") { $0.refreshCount }, event("evicted") { $0.evictionCount },
    event("invalidated") { $0.invalidationCount }, event("storeFailure") { $0.storeFailureCount },
    event("storeTimeout") { $0.storeTimeoutCount }, event("damage") { $0.damageCount },
    bytes("store") { $0.storedBytesRead }, bytes("origin") { $0.originBytesRead },
  ]

  private static func event(
    _ name: String, _ count: @escaping @Sendable (HTTPCacheStatistics) -> Int
  ) -> (Key, @Sendable (HTTPCacheStatistics) -> Int) {
    (Key(label: "larder_http_events", dimensions: [Dimension("event", name)]), count)
  }

  private static func bytes(
    _ source: String, _ count: @escaping @Sendable (HTTPCacheStatistics) -> Int
  ) -> (Key, @Sendable (HTTPCacheStatistics) -> Int) {
    (Key(label: "larder_http_bytes", dimensions: [Dimension("source", source)]), count)
  }

  /// Adds to the counters what the statistics have more than before.
  ///
  /// Two tasks may report their statistics in another order than they have read them. A count that is unchanged costs a
  /// comparison.
  func report(_ statistics: HTTPCacheStatistics) {
    guard let factory else { return }
    let increments = state.withLock { state -> [(counter: Counter, count: Int)] in
      var increments: [(counter: Counter, count: Int)] = []
      for (position, event) in Self.events.enumerated() {
        let added = event.count(statistics) - state.counts[position]
        guard added > 0 else { continue }
        state.counts[position] += added
        increments.append((counter(event.key, factory, &state), added))
      }
      guard statistics.notStoredCounts != state.notStoredCounts else { return increments }
      for (reason, count) in statistics.notStoredCounts {
        let added = count - state.notStoredCounts[reason, default: 0]
        guard added > 0 else { continue }
        state.notStoredCounts[reason] = count
        let key = Key(label: "larder_http_not_stored", dimensions: [Dimension("reason", reason)])
        increments.append((counter(key, factory, &state), added))
      }
      return increments
    }
    for (counter, count) in increments { counter.increment(by: count) }
  }

  private func counter(_ key: Key, _ factory: any MetricsFactory, _ state: inout State) -> Counter {
    if let counter = state.counters[key] { return counter }
    let counter = Counter(label: key.label, dimensions: all(key.dimensions), factory: factory)
    state.counters[key] = counter
    return counter
  }
}

extension CacheStatus {
  /// The kind of the answer.
  fileprivate var outcome: String {
    if isStale { return "stale" }
    if isHit { return "hit" }
    if isValidated { return "validated" }
    if isCollapsed { return "collapsed" }
    return forward == nil ? "refused" : "forwarded"
  }
}
#endif
