#if Metrics
import Larder
import Tracing

/// The tracing span of an operation or a block.
@usableFromInline
final class RunSpan: Sendable {
  private let span: any Span
  private let names: OperationNames

  /// Starts a span.
  ///
  /// - Parameters:
  ///   - names: The names of the operation or block.
  ///   - tracer: The tracer.
  init(_ names: OperationNames, tracer: any Tracer) {
    self.names = names
    var context = InstrumentationContext.current ?? .topLevel
    let callers = context[LinkedCallers.self] ?? []
    // Only this span has the links, not its child spans.
    if !callers.isEmpty { context[LinkedCallers.self] = nil }
    span = tracer.startSpan(names.span, context: context, ofKind: names.spanKind)
    for (name, value) in names.attributes { span.attributes[name] = value }
    for caller in callers { span.addLink(SpanLink(context: caller, attributes: [:])) }
  }

  /// Runs an asynchronous closure whose spans become children of this span.
  ///
  /// - Parameter body: The closure. It runs where the caller is.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws.
  @usableFromInline
  func within<Result, Failure: Error>(
    _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    // `withValue` loses the type of the error.
    try await InstrumentationContext.$current.withValue(span.context) { () -> Swift.Result<Result, Failure> in
      do throws(Failure) {
        return .success(try await body())
      } catch {
        return .failure(error)
      }
    }.get()
  }

  /// Runs a synchronous closure whose spans become children of this span.
  ///
  /// - Parameter body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws.
  func within<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    try InstrumentationContext.$current.withValue(span.context) { Swift.Result(catching: body) }.get()
  }

  /// Ends the span.
  ///
  /// - Parameter outcome: The outcome of the operation or block.
  func end(_ outcome: OperationMeter.Outcome) {
    for (name, value) in names.attributes(of: outcome) { span.attributes[name] = value }
    // The error itself is left out because it may contain values.
    if outcome.isFailure { span.setStatus(SpanStatus(code: .error)) }
    span.end()
  }
}

/// The tracing context of a caller whose work another task does.
struct TracedCaller: CallerContext {
  /// The maximum number of links of a span.
  ///
  /// Backends keep about as many, and a group may have thousands of callers.
  private static let linkLimit = 128

  let context: InstrumentationContext

  /// Registers, once, how the tracing context of a task is captured.
  static let registration: Void = CallerContexts.register {
    InstrumentationContext.current.map { TracedCaller(context: $0) }
  }

  func run<Result>(
    for callers: [any CallerContext], among count: Int, _ body: () async throws -> Result
  ) async throws -> Result {
    var context = context
    if count > 1 {
      // Work for several callers belongs to none of their traces, even if only one of them is traced.
      context = .topLevel
      context[LinkedCallers.self] = callers.prefix(TracedCaller.linkLimit).compactMap { ($0 as? TracedCaller)?.context }
    }
    return try await InstrumentationContext.$current.withValue(context) { try await body() }
  }
}

/// The callers whose spans the next span links to.
private enum LinkedCallers: InstrumentationContextKey {
  typealias Value = [InstrumentationContext]
}
#endif
