#if HTTPCache && Metrics
public import CoreMetrics
public import Tracing

/// The report of an ``HTTPCache`` to swift-metrics and to tracing.
///
/// It needs the trait `Metrics`.
///
/// ```swift
/// configuration.metering = HTTPCacheMetering(name: "api")
/// ```
///
/// The cache emits:
///
/// - A timer `larder_http_request_duration` with the dimensions `cache`, `outcome` and `reason`, until the head of the
///   response is returned. The outcome is `hit`, `stale`, `validated`, `collapsed`, `forwarded`, `refused` (504 by the
///   cache), `failed` or `cancelled`. The reason is that for forwarding, as in `Cache-Status`, or `none`.
/// - A timer `larder_http_fetch_duration` with the dimensions `cache` and `outcome`, until the head of the origin's response
///   has arrived. The outcome is the class of the status code, such as `2xx`, or `failed` or `cancelled`.
/// - A counter `larder_http_not_stored` with the dimensions `cache` and `reason`, as in
///   ``HTTPCacheStatistics/notStoredCounts``.
/// - A counter `larder_http_events` with the dimensions `cache` and `event`: `stored`, `refreshed`, `evicted`, `invalidated`,
///   `storeFailure`, `storeTimeout` and `damage`.
/// - A counter `larder_http_bytes` of bodies with the dimensions `cache` and `source`: `store` or `origin`.
/// - A span `larder.http.request` for each request, as a child of the caller's span, and a span `larder.http.fetch` for each
///   forwarded request, as a child of the span of the request that caused it. The spans of your client are children of
///   the latter. They have the dimensions of the timers as the attributes `larder.cache`, `larder.outcome` and
///   `larder.reason`.
///
/// No URL and no field appears in a metric or a span.
public struct HTTPCacheMetering: Sendable {
  /// The name of the cache in metrics and spans.
  public var name: String

  /// The backend of swift-metrics.
  public var metrics: any MetricsFactory

  /// The tracer.
  public var tracer: any Tracer

  /// Creates a report.
  ///
  /// - Parameters:
  ///   - name: The name of the cache in metrics and spans.
  ///   - metrics: The backend of swift-metrics. Defaults to the bootstrapped one. A no-op backend costs nothing.
  ///   - tracer: The tracer. Defaults to the bootstrapped one. A no-op tracer costs nothing.
  public init(
    name: String, metrics: any MetricsFactory = MetricsSystem.factory,
    tracer: any Tracer = InstrumentationSystem.tracer
  ) {
    (self.name, self.metrics, self.tracer) = (name, metrics, tracer)
  }
}
#endif
