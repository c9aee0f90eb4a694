#if Metrics
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
    span = tracer.startSpan("larder.\(name)", ofKind: .client)
    span.attributes["larder.store"] = store
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
  /// - Parameter error: The code of the error, or `nil` where it went well.
  func end(error: String?) {
    span.attributes["larder.outcome"] = error ?? "success"
    // Not the error itself: what the body of an update threw may hold values.
    if error != nil { span.setStatus(SpanStatus(code: .error)) }
    span.end()
  }
}
#endif
