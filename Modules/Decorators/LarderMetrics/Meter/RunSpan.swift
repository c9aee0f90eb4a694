#if Metrics
internal import Larder
internal import Tracing

/// The span of an operation or a block.
@usableFromInline
final class RunSpan: Sendable {
  private let span: any Span

  /// Starts a span.
  ///
  /// - Parameters:
  ///   - name: The name of the operation or block.
  ///   - store: The name of the store.
  ///   - tracer: The tracer.
  init(_ name: String, store: String, tracer: any Tracer) {
    var context = InstrumentationContext.current ?? .topLevel
    let callers = context[LinkedCallers.self] ?? []
    // The links are those of this span alone, not of the spans below it.
    if !callers.isEmpty { context[LinkedCallers.self] = nil }
    span = tracer.startSpan("larder.\(name)", context: context, ofKind: .client)
    span.attributes["larder.store"] = store
    for caller in callers { span.addLink(SpanLink(context: caller, attributes: [:])) }
  }

  /// Does something whose spans belong to this one.
  ///
  /// - Parameter body: Does it, where the caller is.
  /// - Returns: What `body` returned.
  /// - Throws: What `body` threw.
  @usableFromInline
  func within<Result, Failure: Error>(
    _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    // What a task-local value is bound for loses the type of its error.
    try await InstrumentationContext.$current.withValue(span.context) { () -> Swift.Result<Result, Failure> in
      do throws(Failure) {
        return .success(try await body())
      } catch {
        return .failure(error)
      }
    }.get()
  }

  /// Does something, without waiting, whose spans belong to this one.
  ///
  /// - Parameter body: Does it.
  /// - Returns: What `body` returned.
  /// - Throws: What `body` threw.
  func within<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    try InstrumentationContext.$current.withValue(span.context) { Swift.Result(catching: body) }.get()
  }

  /// Ends the span.
  ///
  /// - Parameter outcome: How the operation or block ended.
  func end(_ outcome: OperationMeter.Outcome) {
    span.attributes["larder.outcome"] = outcome.name
    // Not the error itself: it may hold values.
    if outcome.isFailure { span.setStatus(SpanStatus(code: .error)) }
    span.end()
  }
}

/// The span of a caller, for work that another task does for it.
struct TracedCaller: CallerContext {
  /// The most links of a span.
  ///
  /// Backends keep about as many, and a group may have thousands of callers.
  private static let linkLimit = 128

  let context: InstrumentationContext

  func run<Result>(
    for callers: [any CallerContext], among count: Int, _ body: () async throws -> Result
  ) async throws -> Result {
    var context = context
    if count > 1 {
      // Work for many belongs to none of their traces, not even to the only one that is traced.
      context = .topLevel
      context[LinkedCallers.self] = callers.prefix(TracedCaller.linkLimit).compactMap { ($0 as? TracedCaller)?.context }
    }
    return try await InstrumentationContext.$current.withValue(context) { try await body() }
  }
}

/// The callers to whose spans the next span is linked.
private enum LinkedCallers: InstrumentationContextKey {
  typealias Value = [InstrumentationContext]
}
#endif
