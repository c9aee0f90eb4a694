#if HTTPCache && Metrics
internal import CoreMetrics
internal import HTTPCachingRules
internal import HTTPTypes
internal import Larder
internal import Tracing

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
    var counts: [Key: Int] = [:]
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

  /// Adds to the counters what the statistics have more than before.
  ///
  /// Two tasks may report their statistics in another order than they have read them.
  func report(_ statistics: HTTPCacheStatistics) {
    guard let factory else { return }
    let counts = statistics.meteredCounts.map { count in
      (key: Key(label: count.label, dimensions: [Dimension(count.dimension, count.value)]), count: count.count)
    }
    let increments = state.withLock { state in
      counts.compactMap { key, count -> (counter: Counter, count: Int)? in
        let added = count - state.counts[key, default: 0]
        guard added > 0 else { return nil }
        state.counts[key] = count
        let counter =
          state.counters[key] ?? Counter(label: key.label, dimensions: all(key.dimensions), factory: factory)
        state.counters[key] = counter
        return (counter, added)
      }
    }
    for (counter, count) in increments { counter.increment(by: count) }
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

extension HTTPCacheStatistics {
  /// The counts that counters report.
  fileprivate var meteredCounts: [(label: String, dimension: String, value: String, count: Int)] {
    let events = [
      ("stored", storedCount), ("refreshed", refreshCount), ("evicted", evictionCount),
      ("invalidated", invalidationCount), ("storeFailure", storeFailureCount), ("storeTimeout", storeTimeoutCount),
      ("damage", damageCount),
    ]
    return events.map { ("larder_http_events", "event", $0.0, $0.1) }
      + [("store", storedBytesRead), ("origin", originBytesRead)].map { ("larder_http_bytes", "source", $0.0, $0.1) }
      + notStoredCounts.map { ("larder_http_not_stored", "reason", $0.key, $0.value) }
  }
}
#endif
